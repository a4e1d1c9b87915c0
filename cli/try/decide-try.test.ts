import { describe, expect, it } from 'vitest';
import type { MachineConfig } from '../../api/machine-config.ts';
import { annotations } from '../../api/names.ts';
import { decideEnd, decideStart } from './decide-try.ts';

const TERMS = { id: 'a', by: 'alice', at: '', until: '2026-06-01T00:10:00Z' };
const config = (argument: string, set: Readonly<Record<string, string>> = {}): MachineConfig => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name: '99-a', labels: {}, annotations: set },
  spec: { kernelArguments: [argument] },
});
function tried(argument: string): MachineConfig {
  const start = decideStart(config('a'), config(argument), TERMS);
  if (start.kind !== 'write') throw new Error(start.kind);
  return start.config;
}

describe('starting', () => {
  it.each<[string, MachineConfig | undefined, object]>([
    ['a new one', undefined, { kind: 'write', replaces: false }],
    ['a changed one', config('a'), { kind: 'write', replaces: true }],
    ['what is so already', config('b'), { kind: 'unchanged', name: '99-a' }],
    ['the same again', tried('b'), { kind: 'unchanged', name: '99-a', until: TERMS.until }],
    [
      'something else while one is tried',
      tried('c'),
      {
        kind: 'refused',
        why: `MachineConfig 99-a: another change of alice is being tried until ${TERMS.until}; confirm or cancel it first`,
      },
    ],
    [
      'what a controller generates',
      config('a', { [annotations.generatedByController]: 'x' }),
      { kind: 'refused', why: expect.stringContaining('a controller generates it') },
    ],
    [
      'one whose annotation is broken',
      config('a', { [annotations.try]: '{' }),
      { kind: 'refused', why: expect.stringContaining("can't be read") },
    ],
  ])('%s', (_what, current, start) => {
    expect(decideStart(current, config('b'), TERMS)).toMatchObject(start);
  });
});

describe('ending', () => {
  const other = { ...config('x'), metadata: { name: '99-b' } };

  it.each<[readonly string[], readonly string[], readonly string[], readonly string[]]>([
    [[], ['99-a'], [], []],
    [['99-a'], ['99-a'], [], []],
    [['99-b', '99-c'], [], ['99-b'], ['99-c']],
    [['99-c', '99-a'], ['99-a'], [], ['99-c']],
  ])('%j', (names, ends, others, missing) => {
    const end = decideEnd([tried('b'), other], names);
    expect(end.tried.map(({ metadata }) => metadata.name)).toEqual(ends);
    expect(end.others).toEqual(others);
    expect(end.missing).toEqual(missing);
  });
});
