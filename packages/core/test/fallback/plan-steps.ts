/** A plan under way, and the targets and failures that tests of it are made of. */

import { defaultFallbackStatusCodes, defaultRetry } from "../../src/config/defaults.js";
import type { Failure } from "../../src/errors.js";
import { Plan, type PlanOutput, type PlanTarget } from "../../src/fallback/plan.js";

export function target(own: Partial<PlanTarget["retry"]> & Partial<Omit<PlanTarget, "retry">> = {}): PlanTarget {
  const { fallbackStatusCodes = defaultFallbackStatusCodes, fallbackCandidate = true, ...retry } = own;
  return { retry: { ...defaultRetry, ...retry }, fallbackStatusCodes, fallbackCandidate };
}

export function http(status: number, own: Partial<Failure> = {}): Failure {
  const retryable = [408, 424, 429].includes(status) || (status >= 500 && status !== 501);
  return { kind: "http", status, code: `code_${status}`, message: `${status}`, retryable, ...own };
}

/** A plan with its first attempt under way. */
export class Started {
  readonly plan: Plan;
  now = 1000;

  constructor(targets: readonly PlanTarget[], lastStart = Infinity, random = 0.5) {
    this.plan = new Plan(targets, lastStart, () => random);
    this.plan.step({ type: "start", now: this.now });
  }

  reject(failure: Failure): PlanOutput {
    return this.plan.step({ type: "rejected", failure, now: this.now });
  }

  /** Rejects, and waits where the plan says so. */
  next(failure: Failure): PlanOutput {
    const output = this.reject(failure);
    if (output.type !== "wait") return output;
    this.now = output.until;
    return this.plan.step({ type: "waited", now: this.now });
  }
}

export const retried: object = { type: "attempt", target: 0, retry: true };
export const fellBack: object = { type: "attempt", target: 1, retry: false };
export const gaveUp: object = { type: "give-up" };
