/** Status lists of the configuration: single codes and whole classes. */

/** A status of a failed attempt, 400 to 599, or all of a class. */
export type StatusCode = number | "4xx" | "5xx";

/** Whether `status` is in the list. An empty list matches nothing. */
export function matchStatus(codes: readonly StatusCode[], status: number): boolean {
  return codes.some((code) => {
    if (code === "4xx") return status >= 400 && status <= 499;
    if (code === "5xx") return status >= 500 && status <= 599;
    return code === status;
  });
}
