/** Where progress is told: standard error, or a test's own. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface ProgressLine {
  /** Tells how far the work is; the same again is told once. */
  show(text: string): void;
  /** Leaves the last line to whatever is printed next. */
  end(): void;
}

const DEFAULT_COLUMNS = 100;
/** Back to the line's beginning, and everything on it away (ECMA-48: EL). */
const CLEAR_LINE = '\r\u001b[2K';

/** On a terminal one line that changes; anywhere else a line for each change, as logs want it. */
export function progressLine(output: ProgressOutput): ProgressLine {
  let last = '';
  return {
    show(text) {
      if (text === last) return;
      last = text;
      const onTerminal = output.isTTY === true;
      const width = (output.columns ?? DEFAULT_COLUMNS) - 1;
      output.write(onTerminal ? `${CLEAR_LINE}${text.slice(0, width)}` : `${text}\n`);
    },
    end() {
      if (output.isTTY === true && last !== '') output.write(CLEAR_LINE);
      last = '';
    },
  };
}
