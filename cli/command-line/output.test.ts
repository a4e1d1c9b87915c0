import { expect, test } from 'vitest';
import { createScreen } from './output.ts';

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
