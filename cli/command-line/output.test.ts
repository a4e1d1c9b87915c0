import { expect, test } from 'vitest';
import { createScreen, progressLines } from './output.ts';

function screenOf(columns: number, rows: number) {
  const written: string[] = [];
  return { written, screen: createScreen({ columns, rows, write: (text) => written.push(text) }) };
}

test('a drawing replaces the one before', () => {
  const { written, screen } = screenOf(80, 24);
  screen.draw('one\ntwo\n');
  screen.draw('three');
  expect(written).toEqual(['\r\u001b[Jone\ntwo\n', '\u001b[2A\r\u001b[Jthree\n']);
});

test('lines that do not fit are cut and counted', () => {
  const { written, screen } = screenOf(10, 4);
  screen.draw('a long line indeed\n2\n3\n4\n5');
  expect(written).toEqual(['\r\u001b[Ja long li\n2\n… 3 more \n'.replace('… 3 more ', '… 3 more ')]);
});

function progressOf(terminal: {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}) {
  const written: string[] = [];
  return { written, progress: progressLines({ ...terminal, write: (text) => written.push(text) }) };
}

test('in a log the progress of a pool is a line of its own, printed when it changes', () => {
  const { written, progress } = progressOf({});
  progress.show('infra: 0/1 nodes\nworker: 0/2 nodes');
  progress.show('infra: 0/1 nodes\nworker: 0/2 nodes');
  progress.show('infra: 0/1 nodes\nworker: 1/2 nodes');
  progress.show('worker: 1/2 nodes');
  progress.end();
  expect(written).toEqual(['infra: 0/1 nodes\n', 'worker: 0/2 nodes\n', 'worker: 1/2 nodes\n']);
});

test('on a terminal the lines of the pools change in place, and are broken to fit it', () => {
  const { written, progress } = progressOf({ isTTY: true, columns: 18, rows: 4 });
  progress.show('infra: 0/1 nodes; worker-0: verifying\nworker\nthird');
  progress.show('infra: 0/1 nodes; worker-0: verifying\nworker\nfourth');
  progress.show('worker');
  progress.end();
  progress.end();
  expect(written).toEqual([
    '\r\u001b[Jinfra: 0/1 nodes;\n  worker-0:\n  verifying',
    '\r\u001b[2A\u001b[Jworker',
    '\r\u001b[J',
  ]);
});
