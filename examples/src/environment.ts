/** Settings of the examples: environment variables, and a usage message when one is missing. */

export interface Variable {
  /** For the usage message. */
  readonly meaning: string;
  /** Absent: the variable is required. */
  readonly fallback?: string;
}

/** Reads the variables. When a required one is missing or empty, prints a usage message and exits with code 2. */
export function readEnvironment<Name extends string>(
  command: string,
  variables: Readonly<Record<Name, Variable>>,
): Readonly<Record<Name, string>> {
  const entries = Object.entries<Variable>(variables);
  const values = entries.map(([name, { fallback }]) => [name, process.env[name] || fallback] as const);
  const missing = values.filter(([, value]) => value === undefined).map(([name]) => name);
  if (missing.length > 0) {
    console.error(`Missing: ${missing.join(", ")}\n\nUsage: ${command}\n\n${usage(entries)}`);
    process.exit(2);
  }
  return Object.fromEntries(values) as Record<Name, string>;
}

/** A port number; prints what is wrong and exits with code 2 otherwise. 0 lets the system pick one. */
export function portOf(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  console.error(`PORT must be a number from 0 to 65535, not "${text}"`);
  process.exit(2);
}

function usage(entries: readonly (readonly [string, Variable])[]): string {
  const width = Math.max(...entries.map(([name]) => name.length));
  const lines = entries.map(([name, { meaning, fallback }]) => {
    const note = fallback === undefined ? "" : ` (default: ${fallback})`;
    return `  ${name.padEnd(width)}  ${meaning}${note}`;
  });
  return lines.join("\n");
}
