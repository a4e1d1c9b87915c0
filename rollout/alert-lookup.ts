import type { Logger } from 'pino';
import { plural } from '../api/plural.ts';
import type { AlertHold, AlertMatchers } from './alert-matchers.ts';

/** @returns the names of the alerts that are active and meet all matchers. @throws Error when it can't be found out. */
export type AskAlerts = (matchers: AlertMatchers, signal: AbortSignal) => Promise<readonly string[]>;

/** Whether alerts hold a pool's updates back. */
export type AlertState =
  | { readonly kind: 'clear' }
  /** The question is under way; the pool is reconciled when there is an answer. */
  | { readonly kind: 'asking' }
  | { readonly kind: 'firing'; readonly why: string }
  | { readonly kind: 'unknown'; readonly why: string };

export interface AlertLookupParts {
  /** Absent: the operator has no --alertmanager-url. */
  readonly ask: AskAlerts | undefined;
  /** Called for a pool when there is an answer. */
  readonly onAnswer: (pool: string) => void;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** ms since any moment. */
  readonly now: () => number;
}

interface Answer {
  readonly state: AlertState;
  /** ms */
  readonly at: number;
}

interface Question {
  /** What it is about; another one makes the answer worthless. */
  readonly key: string;
  answer?: Answer;
  isAsking: boolean;
}

/** ms; alerts are evaluated every 15 s to a minute. Nothing starts because of an older answer. */
const FRESH = 15_000;
/** ms */
const DEADLINE = 10_000;
/** Names in a message. */
const NAMED_ALERTS = 5;

/**
 * Asks whether alerts hold a pool's updates back. A pass over a pool never waits for the answer: it holds the nodes that could
 * start, and the answer causes the next pass.
 */
export class AlertLookup {
  readonly #parts: AlertLookupParts;
  readonly #questions = new Map<string, Question>();

  constructor(parts: AlertLookupParts) {
    this.#parts = parts;
  }

  /** @returns what is known now; where that is too old, the question is asked. */
  stateOf(pool: string, hold: AlertHold): AlertState {
    if (hold.kind === 'none') return { kind: 'clear' };
    if (hold.kind === 'unreadable') return { kind: 'unknown', why: "the annotation can't be read" };
    const { ask, now } = this.#parts;
    if (ask === undefined) return { kind: 'unknown', why: 'the operator has no --alertmanager-url' };
    const question = this.#questionOf(pool, JSON.stringify(hold.matching));
    const { answer } = question;
    const isFresh = answer !== undefined && now() - answer.at < FRESH;
    if (!isFresh && !question.isAsking) this.#begin(pool, question, hold.matching, ask);
    if (answer === undefined || (answer.state.kind === 'clear' && !isFresh)) return { kind: 'asking' };
    return answer.state;
  }

  #questionOf(pool: string, key: string): Question {
    const known = this.#questions.get(pool);
    if (known?.key === key) return known;
    const question: Question = { key, isAsking: false };
    this.#questions.set(pool, question);
    return question;
  }

  #begin(pool: string, question: Question, matching: readonly AlertMatchers[], ask: AskAlerts): void {
    const { signal, onAnswer, log, now } = this.#parts;
    question.isAsking = true;
    this.#answerTo(pool, matching, ask)
      .then((state) => {
        question.answer = { state, at: now() };
        question.isAsking = false;
        if (!signal.aborted) onAnswer(pool);
      })
      .catch((error: unknown) => log.error({ pool, err: error }, 'the answer about alerts is lost'));
  }

  async #answerTo(pool: string, matching: readonly AlertMatchers[], ask: AskAlerts): Promise<AlertState> {
    const { signal, log } = this.#parts;
    const until = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE)]);
    try {
      const found = await Promise.all(matching.map((matchers) => ask(matchers, until)));
      return firing(found.flat());
    } catch (error) {
      if (!signal.aborted) log.warn({ pool, err: error }, 'alerts could not be read');
      return { kind: 'unknown', why: error instanceof Error ? error.message : String(error) };
    }
  }
}

function firing(found: readonly string[]): AlertState {
  const names = [...new Set(found)].sort();
  if (names.length === 0) return { kind: 'clear' };
  const more = names.length - NAMED_ALERTS;
  const named = names.slice(0, NAMED_ALERTS).join(', ');
  return {
    kind: 'firing',
    why: `${plural(names.length, 'alert')} ${names.length === 1 ? 'is' : 'are'} firing: ${named}${more > 0 ? ` and ${more} more` : ''}`,
  };
}
