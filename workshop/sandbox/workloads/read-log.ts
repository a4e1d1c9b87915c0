import { watch } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import path from 'node:path';
import type { LogOptions } from '@shale/apiserver/logs/log-options.ts';

/** Where the log of a container is: a file, from the byte on at which the container started. */
export interface LogPlace {
  readonly file: string;
  readonly from: number;
  /** The byte at which the container's successor started; absent for the last one. */
  readonly to?: number;
}

/**
 * Reads a log as a kubelet does: what there is, and with `follow` what comes until the end.
 *
 * @param end aborted when nothing more will come. @throws Error when the file can't be read; one that isn't there is
 *   empty.
 */
export async function* readLog(
  { file, from, to = Number.POSITIVE_INFINITY }: LogPlace,
  options: LogOptions,
  end: AbortSignal,
): AsyncGenerator<string> {
  const budget = { bytes: options.limitBytes ?? Number.POSITIVE_INFINITY };
  const lines = new Lines();
  const changes = options.follow ? watchFile(file, end) : undefined;
  let position = from;
  let isFirst = true;
  try {
    for (;;) {
      // What came before the end was noticed is read after it.
      const isLast = changes === undefined || end.aborted;
      const chunk = await readFrom(file, position, to);
      position += chunk.length;
      const read = lines.push(chunk, isLast);
      const text = wanted(read, options, isFirst).join('');
      isFirst = false;
      const cut = Buffer.from(text).subarray(0, budget.bytes);
      budget.bytes -= cut.length;
      if (cut.length > 0) yield cut.toString();
      if (isLast || budget.bytes === 0) return;
      if (chunk.length === 0) await changes.next();
    }
  } finally {
    changes?.close();
  }
}

interface Line {
  readonly text: string;
  readonly time: Date | undefined;
}

/** Makes lines of chunks. A line without a time of its own is of that before it. */
class Lines {
  #rest = Buffer.alloc(0);
  #time: Date | undefined;

  /** @param isLast whether a line without an end is one. */
  push(chunk: Buffer, isLast: boolean): readonly Line[] {
    const all = Buffer.concat([this.#rest, chunk]);
    const cut = isLast ? all.length : all.lastIndexOf('\n') + 1;
    this.#rest = all.subarray(cut);
    const texts = all
      .subarray(0, cut)
      .toString('utf8')
      .split(/(?<=\n)/);
    return texts
      .filter((text) => text !== '')
      .map((text) => {
        this.#time = timeOf(text) ?? this.#time;
        return { text, time: this.#time };
      });
  }
}

/** Shale's processes log JSON, with a time of RFC 3339 or the milliseconds of pino (--log-format). */
function timeOf(text: string): Date | undefined {
  const time = /^\{"level":(?:"\w+"|\d+),"time":(?:"(?<text>[^"]+)"|(?<ms>\d+))[,}]/.exec(text)?.groups;
  if (time === undefined) return undefined;
  const date = new Date(time['text'] ?? Number(time['ms']));
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/** @param isFirst of the lines that were there at first, the last ones may be asked for. */
function wanted(
  lines: readonly Line[],
  { tailLines, since, timestamps }: LogOptions,
  isFirst: boolean,
): readonly string[] {
  const recent =
    since === undefined ? lines : lines.filter(({ time }) => time === undefined || time >= since);
  const tail =
    isFirst && tailLines !== undefined
      ? recent.slice(recent.length - Math.min(tailLines, recent.length))
      : recent;
  if (!timestamps) return tail.map(({ text }) => text);
  return tail.map(({ text, time }) => (time === undefined ? text : `${time.toISOString()} ${text}`));
}

async function readFrom(file: string, position: number, to: number): Promise<Buffer> {
  let handle: FileHandle;
  try {
    handle = await open(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
  try {
    const { size } = await handle.stat();
    const buffer = Buffer.alloc(Math.max(0, Math.min(size, to) - position));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** Notices changes of a file that may not be there yet. Its owner closes it. */
function watchFile(file: string, end: AbortSignal): { next(): Promise<void>; close(): void } {
  let wake: () => void = () => undefined;
  let hasChanged = false;
  const notify = () => {
    hasChanged = true;
    wake();
  };
  const watcher = watch(path.dirname(file), (_, name) => {
    if (name === null || name === path.basename(file)) notify();
  });
  end.addEventListener('abort', notify);
  return {
    async next() {
      if (!hasChanged && !end.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      hasChanged = false;
    },
    close() {
      watcher.close();
      end.removeEventListener('abort', notify);
    },
  };
}
