import { expect, test } from 'vitest';
import { tourProgress } from './command.ts';

function recorder(isTTY: boolean) {
  const written: string[] = [];
  return { written, output: { isTTY, columns: 40, write: (text: string) => written.push(text) } };
}

const end = { number: 1, title: 't', seconds: 1.26, checks: [], rows: [] };

test('without a terminal each thing that happens is a line', () => {
  const { written, output } = recorder(false);
  const progress = tourProgress(output, 8);
  progress.onStep(1, 'Cluster up');
  progress.onProgress('worker: 1/3', 0.25);
  progress.onCheck('it is so');
  progress.onStepEnd(end);
  expect(written.join('')).toBe(
    '[1/8] Cluster up\n      worker: 1/3\n      ok: it is so\n[1/8] done in 1.3 s\n',
  );
});

test('on a terminal one line changes, and is never wider than it', () => {
  const { written, output } = recorder(true);
  const progress = tourProgress(output, 8);
  progress.onProgress('worker: 1/3, infra: image is being built', 0.5);
  expect(written[0]).toContain('██████████░░░░░░░░░░');
  expect(written[0]?.slice('\r\u001b[2K'.length)).toHaveLength(39);
  progress.onStepEnd({ ...end, failure: { message: '', logs: [] } });
  expect(written[1]).toContain('failed in 1.3 s');
});
