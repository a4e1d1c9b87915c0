import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { FOLDER_VARIABLE, standInFiles } from './stand-in.ts';

/** A mutant where the programs that tests start find it (stand-in.ts). */
export class MutantOnDisk {
  readonly #folder = mkdtempSync(path.join(tmpdir(), 'mutant-'));

  /** What has to be in the environment of the tests. */
  get environment(): Readonly<Record<string, string>> {
    const preload = `--import=${path.join(import.meta.dirname, 'stand-in.ts')}`;
    return {
      [FOLDER_VARIABLE]: this.#folder,
      NODE_OPTIONS: [process.env['NODE_OPTIONS'], preload].filter(Boolean).join(' '),
    };
  }

  /** @param file that is mutated, an absolute path. @param source its text as a mutant. */
  put(file: string, source: string): void {
    rmSync(this.#place('loaded'), { force: true });
    writeFileSync(this.#place('file'), file);
    writeFileSync(this.#place('source'), source);
  }

  /** Whether a program has loaded the mutant since it was put there. */
  get isLoaded(): boolean {
    return existsSync(this.#place('loaded'));
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #place(name: keyof typeof standInFiles): string {
    return path.join(this.#folder, standInFiles[name]);
  }
}
