import path from 'node:path';
import { execa } from 'execa';
import pino from 'pino';
import { expect, test } from 'vitest';
import type { MachineConfiguration } from '../api/machine-configuration.ts';
import { aboutChange } from './events.ts';
import type { ObjectChange } from './informer.ts';
import { followLogLevel, requestedLevel } from './log.ts';

test.each([
  [undefined, undefined],
  [{}, undefined],
  [{ operatorLogLevel: '' }, undefined],
  [{ operatorLogLevel: 'Normal' }, undefined],
  [{ operatorLogLevel: 'Debug' }, 'debug'],
  [{ operatorLogLevel: 'Trace' }, 'trace'],
  [{ operatorLogLevel: 'TraceAll' }, 'trace'],
  [{ logLevel: 'TraceAll' }, undefined],
] as const)('of %j the operator logs %s', (spec, level) => {
  expect(requestedLevel(spec, 'operatorLogLevel')).toBe(level);
});

test('the log follows the MachineConfiguration, and the flag applies where it requests nothing', () => {
  const log = { level: 'info' };
  const handlers: ((change: ObjectChange<MachineConfiguration>) => void)[] = [];
  followLogLevel({ onChange: (handler) => handlers.push(handler) }, log, 'logLevel', 'warn');
  const change = (
    type: ObjectChange<unknown>['type'],
    spec: NonNullable<MachineConfiguration['spec']>,
    name = 'cluster',
  ) => {
    const object = {
      apiVersion: 'operator.openshift.io/v1',
      kind: 'MachineConfiguration',
      metadata: { name },
      spec,
    };
    for (const handler of handlers) handler({ type, object });
    return log.level;
  };
  expect(change('ADDED', { logLevel: 'Debug', operatorLogLevel: 'Trace' })).toBe('debug');
  expect(change('ADDED', { logLevel: 'Trace' }, 'another')).toBe('debug');
  expect(change('MODIFIED', { logLevel: 'TraceAll' })).toBe('trace');
  expect(change('MODIFIED', { logLevel: 'Normal' })).toBe('warn');
  expect(change('MODIFIED', { logLevel: 'Debug' })).toBe('debug');
  expect(change('DELETED', { logLevel: 'Debug' })).toBe('warn');
});

test('what is under way on a change logs at the level that is requested meanwhile', () => {
  const lines: string[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line).msg) });
  const events = { normal: () => undefined, warning: () => undefined };
  const child = aboutChange({ log, events }, 'rendered-worker-1').log;
  const grandchild = child.child({ node: 'a' });
  const logAll = (text: string) => {
    for (const each of [child, grandchild]) each.debug(text);
  };
  logAll('before');
  log.level = 'debug';
  logAll('requested');
  log.level = 'info';
  logAll('withdrawn');
  expect(lines).toEqual(['requested', 'requested']);
});

/** @returns what a process that has no terminal logs. */
async function logged(message: string, format: string): Promise<string> {
  const script = `import { createLogger } from ${JSON.stringify(path.join(import.meta.dirname, 'log.ts'))};
    createLogger('test', 'info', process.argv[2]).info(JSON.parse(process.argv[1]));`;
  const args = ['--input-type=module', '-e', script, JSON.stringify(message), format];
  return (await execa(process.execPath, args)).stderr;
}

test('lines have times of RFC 3339 and names of levels, or those of pino where the flag asks for them', async () => {
  const line = JSON.parse(await logged('m', 'rfc3339'));
  expect(line).toMatchObject({ level: 'info', time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) });
  expect(Object.keys(line).slice(0, 2)).toEqual(['level', 'time']);
  expect(JSON.parse(await logged('m', 'pino'))).toMatchObject({ level: 30, time: expect.any(Number) });
});

test('a log line is JSON that a terminal shows and executes nothing of', async () => {
  const message = 'c1 \u009b2J, backwards \u202e, a line \u2028 and \u001b[2J';
  const stderr = await logged(message, 'rfc3339');
  expect(stderr).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
  expect(JSON.parse(stderr)).toMatchObject({ name: 'test', msg: message });
});
