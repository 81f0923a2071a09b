/** What a client received in the end. */

export type Outcome = Answered | Failed;

export interface Answered {
  readonly kind: "answer";
  readonly text: string;
  /** `x-tfy-attempts` of the response. */
  readonly attempts: number;
}

export interface Failed {
  readonly kind: "error";
  /** The class that the SDK threw. */
  readonly error: string;
  readonly status: number | undefined;
  readonly code: string;
}

interface SdkError {
  readonly status?: number;
  readonly code?: string | null;
  readonly type?: string | null;
  readonly message?: string;
  readonly error?: { readonly error?: { readonly message?: string } };
}

/** Reads the typed error of either SDK. */
export function failedWith(error: unknown): Failed & { readonly message: string } {
  const facts = error as SdkError;
  return {
    kind: "error",
    error: error instanceof Error ? error.constructor.name : typeof error,
    status: facts.status,
    code: facts.code ?? facts.type ?? "",
    // Anthropic's SDK puts the whole body into the message and keeps it, parsed, in `error`.
    message: facts.error?.error?.message ?? facts.message ?? String(error),
  };
}

export function sameOutcome(left: Outcome, right: Outcome): boolean {
  if (left.kind === "answer") {
    return right.kind === "answer" && left.text === right.text && left.attempts === right.attempts;
  }
  return (
    right.kind === "error" && left.error === right.error && left.status === right.status && left.code === right.code
  );
}

export function outcomeWords(outcome: Outcome): string {
  if (outcome.kind === "answer") return `the text of attempt ${outcome.attempts}`;
  return `${outcome.error} ${outcome.status ?? ""} ${outcome.code}`.replaceAll(/ +/g, " ").trimEnd();
}

/** For the table. */
export function shortOutcome(outcome: Outcome): string {
  return outcome.kind === "answer" ? `attempt ${outcome.attempts}` : `error ${outcome.status ?? outcome.error}`;
}
