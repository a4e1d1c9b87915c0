import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { formatReport, isSuccess, readLogTails, type TourReport } from './report.ts';

const hash = '0123456789abcdef0123456789abcdef';
const report: TourReport = {
  totalSteps: 2,
  seconds: 12.34,
  peakMemory: 512 * 1024 ** 2,
  steps: [
    {
      number: 1,
      title: 'A change',
      seconds: 3.21,
      checks: ['it is so'],
      rows: [
        {
          node: 'worker-0',
          pool: 'worker',
          mode: 'Layered',
          config: `rendered-worker-${hash}`,
          imageDigest: `sha256:${hash}${hash}`,
          actions: 'Restart(chronyd.service)',
          why: '/etc/chrony.conf',
          rebooted: true,
          seconds: 0.5,
        },
      ],
    },
  ],
};

test('the report is a table of nodes, one of steps, and a sum', () => {
  expect(formatReport(report)).toBe(
    [
      'What each node did:',
      '',
      'step  node      pool    mode     config           image     seconds  actions and why',
      '1     worker-0  worker  Layered  worker-01234567  01234567  0.5      Restart(chronyd.service):',
      '                                                                     /etc/chrony.conf',
      '',
      'Steps:',
      '',
      'step  seconds  reboots  result  title',
      '1     3.2      1        ok      A change',
      '',
      '1 of 2 steps passed in 12.3 s; peak resident memory of all processes: 512 MiB',
      '',
    ].join('\n'),
  );
  expect(isSuccess(report)).toBe(false);
});

test('no line is wider than a hundred columns, whatever a step is called and a node did', () => {
  const title =
    'Disable layering: nodes return to the stock image, and everything that layering created is deleted';
  const steps = report.steps.map((step) => ({
    ...step,
    title,
    rows: step.rows.map((row) => ({ ...row, why: 'the difference between the rendered configs '.repeat(4) })),
  }));
  const lines = formatReport({ ...report, steps }).split('\n');
  const tables = lines.slice(0, lines.lastIndexOf(''));
  expect(tables.filter((line) => line.length > 100 && !line.includes('steps passed'))).toEqual([]);
  expect(tables.join(' ').replaceAll(/ +/g, ' ')).toContain(title);
});

test('a failed step reports why, with the logs that show it', () => {
  const [step] = report.steps;
  const failure = { message: 'waited in vain', logs: [{ file: '/x/daemon.log', lines: ['a', 'b'] }] };
  const failed = {
    ...report,
    totalSteps: 1,
    steps: step === undefined ? [] : [{ ...step, rows: [], failure }],
  };
  const text = formatReport(failed);
  expect(text).toContain('Step 1: waited in vain\n\n/x/daemon.log:\n  a\n  b\n');
  expect(text).toContain('0 of 1 steps');
  expect(isSuccess(failed)).toBe(false);
});

test('of a Deployment whose pods went from node to node, the youngest pod is asked', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'shale-logs-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const logs = {
    'web-0.log': 'old',
    'web-10.log': 'one\ntwo\n',
    'web-ui-0.log': 'another',
    'daemon-a.log': 'd',
  };
  for (const [name, text] of Object.entries(logs)) {
    const file = path.join(directory, name);
    await writeFile(file, text);
    const at = name === 'web-0.log' ? 1 : 2;
    await utimes(file, at, at);
  }
  expect(await readLogTails(directory, ['web', 'absent', 'daemon-a'])).toEqual([
    { file: path.join(directory, 'web-10.log'), lines: ['one', 'two'] },
    { file: path.join(directory, 'daemon-a.log'), lines: ['d'] },
  ]);
});
