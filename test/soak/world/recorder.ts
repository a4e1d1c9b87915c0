import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { History, HistoryEvent } from '../history/history.ts';
import { seconds, timeline } from '../history/timeline.ts';

/** An event without its time. */
export type Seen = HistoryEvent extends infer E ? (E extends HistoryEvent ? Omit<E, 'at'> : never) : never;

/** Writes down what happens, when. */
export class Recorder {
  readonly #start = performance.now();
  readonly #events: HistoryEvent[] = [];
  readonly #secrets: string[] = [];
  readonly #file: string;
  #noted = '';

  /** @param dir where the history is kept; created if it doesn't exist. */
  constructor(dir: string) {
    mkdirSync(dir, { recursive: true });
    this.#file = path.join(dir, 'faults.log');
    writeFileSync(this.#file, '');
  }

  record(seen: Seen): void {
    const event = { ...seen, at: Math.round(this.now()) } as HistoryEvent;
    this.#events.push(event);
    // Of a campaign that is killed, this is left.
    if (event.what === 'fault' || event.what === 'calm')
      this.#write(timeline({ events: [event], secrets: [] }).join('\n'));
  }

  /** Logs what the campaign waits for, where that has changed: of no use to the checker. */
  note(text: string): void {
    if (text === this.#noted) return;
    this.#noted = text;
    this.#write(`${seconds(this.now())} ${text}`);
  }

  /** From now on this text may be in Secrets only. */
  keepSecret(text: string): void {
    this.#secrets.push(text);
  }

  #write(line: string): void {
    appendFileSync(this.#file, `${line}\n`);
  }

  /** @returns ms since the start. */
  now(): number {
    return performance.now() - this.#start;
  }

  get history(): History {
    return { events: this.#events, secrets: this.#secrets };
  }
}
