import { by } from '../../api/order.ts';
import type { BuildSecret } from './build-context.ts';
import { secretPattern } from './secret-forms.ts';

/** What a MachineOSBuild shows of a log; the builder's own log has it whole. */
const KEPT_LINES = 200;
const LONGEST_LINE = 500;
/**
 * Characters of a line that are held until it ends. A longer line is left out as a whole: a part of it could show a
 * part of a secret, which no pattern finds.
 */
const LONGEST_HELD = 64 * 1024;
/** Shorter values stand in every text by chance. */
const SHORTEST_SECRET = 6;

const LEFT_OUT = `(a line of more than ${LONGEST_HELD} characters is not shown)`;

/**
 * The output of a build: lines as they end, none with a secret's value in a form that a person would try
 * (secret-forms.ts).
 */
export class BuildLog {
  readonly #onLine: (line: string) => void;
  readonly #secrets: readonly RegExp[];
  readonly #lines: string[] = [];
  #rest = '';

  /** @param onLine is given each line, masked. */
  constructor(secrets: readonly BuildSecret[], onLine: (line: string) => void) {
    this.#onLine = onLine;
    this.#secrets = patternsOf(secrets);
  }

  /** Takes output as it comes, in pieces of any size. */
  write(text: string): void {
    const lines = `${this.#rest}${text}`.split(/\r\n|[\r\n]/);
    this.#rest = (lines.pop() ?? '').slice(0, LONGEST_HELD + 1);
    for (const line of lines) this.#add(line);
  }

  /** Takes what was left without an end. */
  end(): void {
    if (this.#rest !== '') this.#add(this.#rest);
    this.#rest = '';
  }

  /** The last lines. */
  get tail(): readonly string[] {
    return this.#lines;
  }

  mask(text: string): string {
    return this.#secrets.reduce((masked, secret) => masked.replace(secret, '***'), text);
  }

  #add(line: string): void {
    const masked = line.length > LONGEST_HELD ? LEFT_OUT : this.mask(line).trimEnd();
    if (masked === '') return;
    this.#onLine(masked);
    this.#lines.push(masked.slice(0, LONGEST_LINE));
    if (this.#lines.length > KEPT_LINES) this.#lines.shift();
  }
}

/** A command may print a whole value encoded, or one line of it. */
function patternsOf(secrets: readonly BuildSecret[]): RegExp[] {
  const values = secrets.flatMap(({ value }) => {
    const text = Buffer.from(value).toString('utf8').trim();
    return [text, ...text.split(/\r?\n/).map((line) => line.trim())];
  });
  return [...new Set(values)]
    .filter((value) => value.length >= SHORTEST_SECRET)
    .sort(by(({ length }) => -length))
    .map(secretPattern);
}
