import type { Logger } from 'pino';
import { errorMessage } from '../../api/error-message.ts';
import { shortList } from '../../api/plural.ts';
import type { AlertMatchers, Questions } from '../../api/pool-settings/values.ts';
import { isRecent } from '../../cluster/is-recent.ts';
import type { HoldState } from '../gates/hold.ts';

/** @returns the names of what holds updates back, none if nothing does. @throws Error when it can't be found out. */
export type Ask<Question> = (question: Question, signal: AbortSignal) => Promise<readonly string[]>;

/** What is asked, in words: for messages. */
interface HoldWords {
  /** The flag without which nobody can be asked. */
  readonly flag: string;
  /** One and several of what holds: "alert is firing", "alerts are firing". */
  readonly found: Readonly<Record<'one' | 'more', string>>;
  /** What could not be read, for the log. */
  readonly what: string;
}

interface HoldLookupParts<Question> {
  /** Absent: the operator lacks the flag. */
  readonly ask: Ask<Question> | undefined;
  readonly words: HoldWords;
  /** Called for a pool when there is an answer. */
  readonly onAnswer: (pool: string) => void;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** ms since any moment. */
  readonly now: () => number;
}

interface Answer {
  readonly state: HoldState;
  /** ms */
  readonly at: number;
}

interface PoolQuestion {
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
const NAMED = 5;

/**
 * Asks whether something holds a pool's updates back. A pass over a pool never waits for the answer: it holds the nodes
 * that could start, and the answer causes the next pass.
 */
export class HoldLookup<Question> {
  readonly #parts: HoldLookupParts<Question>;
  readonly #asked = new Map<string, PoolQuestion>();

  constructor(parts: HoldLookupParts<Question>) {
    this.#parts = parts;
  }

  /** @returns what is known now; where that is too old, the question is asked. */
  stateOf(pool: string, hold: Questions<Question>): HoldState {
    if (hold.kind === 'none') return { kind: 'clear' };
    if (hold.kind === 'unreadable') return { kind: 'unknown', why: "the annotation can't be read" };
    const { ask, words, now } = this.#parts;
    if (ask === undefined) return { kind: 'unknown', why: `the operator has no ${words.flag}` };
    const asked = this.#questionOf(pool, JSON.stringify(hold.questions));
    const { answer } = asked;
    const isFresh = answer !== undefined && isRecent(answer.at, now(), FRESH);
    if (!isFresh && !asked.isAsking) this.#begin(pool, asked, hold.questions, ask);
    if (answer === undefined || (answer.state.kind === 'clear' && !isFresh)) return { kind: 'asking' };
    return answer.state;
  }

  #questionOf(pool: string, key: string): PoolQuestion {
    const known = this.#asked.get(pool);
    if (known?.key === key) return known;
    const question: PoolQuestion = { key, isAsking: false };
    this.#asked.set(pool, question);
    return question;
  }

  #begin(pool: string, asked: PoolQuestion, questions: readonly Question[], ask: Ask<Question>): void {
    const { words, signal, onAnswer, log, now } = this.#parts;
    asked.isAsking = true;
    this.#answerTo(pool, questions, ask)
      .then((state) => {
        asked.answer = { state, at: now() };
        asked.isAsking = false;
        if (!signal.aborted) onAnswer(pool);
      })
      .catch((error: unknown) => log.error({ pool, err: error }, `the answer about ${words.what} is lost`));
  }

  async #answerTo(pool: string, questions: readonly Question[], ask: Ask<Question>): Promise<HoldState> {
    const { words, signal, log } = this.#parts;
    const until = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE)]);
    try {
      const answers = await Promise.all(questions.map((question) => ask(question, until)));
      return stateOf(answers.flat(), words);
    } catch (error) {
      if (!signal.aborted) log.warn({ pool, err: error }, `${words.what} could not be read`);
      return { kind: 'unknown', why: errorMessage(error) };
    }
  }
}

function stateOf(answers: readonly string[], { found: words }: HoldWords): HoldState {
  const names = [...new Set(answers)].sort();
  if (names.length === 0) return { kind: 'clear' };
  const count = names.length === 1 ? `1 ${words.one}` : `${names.length} ${words.more}`;
  return { kind: 'holds', why: `${count}: ${shortList(names, NAMED)}` };
}

/** Whom the operator asks before updates start, where a pool wants it; absent: such pools wait. */
export interface Monitoring {
  /** Finds the names of the alerts that are active and meet all matchers. */
  readonly askAlerts?: Ask<AlertMatchers>;
  /** Finds the query again if it has a result. */
  readonly askQueries?: Ask<string>;
}

/** A lookup for each kind of question. */
export interface MonitoringLookups {
  readonly alerts: HoldLookup<AlertMatchers>;
  readonly queries: HoldLookup<string>;
}

/** @returns what looks up the two kinds of question that a pool may name, with the words of each. */
export function monitoringLookups(
  { askAlerts, askQueries }: Monitoring,
  parts: Omit<HoldLookupParts<never>, 'ask' | 'words'>,
): MonitoringLookups {
  return {
    alerts: new HoldLookup({
      ...parts,
      ask: askAlerts,
      words: {
        flag: '--alertmanager-url',
        found: { one: 'alert is firing', more: 'alerts are firing' },
        what: 'alerts',
      },
    }),
    queries: new HoldLookup({
      ...parts,
      ask: askQueries,
      words: {
        flag: '--prometheus-url',
        found: { one: 'query has a result', more: 'queries have a result' },
        what: 'queries',
      },
    }),
  };
}
