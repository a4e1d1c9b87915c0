import { plural } from '../../api/plural.ts';
/** A part of a terminal that is drawn over and over in its place. */
export interface Screen {
  draw(text: string): void;
}

export interface TerminalOutput {
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

/** ECMA-48: ED, everything from the cursor on away. */
const CLEAR_BELOW = '\u001b[J';

/** A text that would scroll can't be drawn over: it is cut to the terminal's height and width. */
export function createScreen(output: TerminalOutput): Screen {
  let drawn = 0;
  return {
    draw(text) {
      const { columns = 80, rows = 24 } = output;
      const all = text.trimEnd().split('\n');
      const room = rows - 1;
      const fitting =
        all.length <= room
          ? all
          : [...all.slice(0, room - 1), `… ${plural(all.length - room + 1, 'more line')}`];
      // ECMA-48: CUU, up to where the last drawing began.
      const up = drawn === 0 ? '' : `\u001b[${drawn}A`;
      output.write(
        `${up}\r${CLEAR_BELOW}${fitting.map((line) => `${line.slice(0, columns - 1)}\n`).join('')}`,
      );
      drawn = fitting.length;
    },
  };
}
