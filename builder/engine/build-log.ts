import type { BuildSecret } from './build-context.ts';

/** What a MachineOSBuild shows of a log; the builder's own log has it whole. */
const KEPT_LINES = 200;
const LONGEST_LINE = 500;
/** Shorter values stand in every text by chance. */
const SHORTEST_SECRET = 6;

/** The output of a build: lines as they end, none with a secret's value in it. */
export class BuildLog {
  readonly #onLine: (line: string) => void;
  readonly #secrets: readonly string[];
  readonly #lines: string[] = [];
  #rest = '';

  /** @param onLine is given each line, masked. */
  constructor(secrets: readonly BuildSecret[], onLine: (line: string) => void) {
    this.#onLine = onLine;
    this.#secrets = secrets
      .flatMap(({ value }) => Buffer.from(value).toString('utf8').split(/\r?\n/))
      .map((line) => line.trim())
      .filter((line) => line.length >= SHORTEST_SECRET)
      .sort((a, b) => b.length - a.length);
  }

  /** Takes output as it comes, in pieces of any size. */
  write(text: string): void {
    const lines = `${this.#rest}${text}`.split(/\r\n|[\r\n]/);
    this.#rest = lines.pop() ?? '';
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
    return this.#secrets.reduce((masked, secret) => masked.replaceAll(secret, '***'), text);
  }

  #add(line: string): void {
    const masked = this.mask(line).trimEnd();
    if (masked === '') return;
    this.#onLine(masked);
    this.#lines.push(masked.slice(0, LONGEST_LINE));
    if (this.#lines.length > KEPT_LINES) this.#lines.shift();
  }
}
