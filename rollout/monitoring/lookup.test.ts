import pino from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type AlertHold,
  type AlertMatchers,
  readAlerts,
  readQueries,
} from '../../api/pool-settings/values.ts';
import { type Ask, type HoldLookup, monitoringLookups } from './lookup.ts';

const CRITICAL = readAlerts(['severity="critical"']);
const TWO = readAlerts(['severity="critical"', 'team="storage"']);

let now: number;
let asked: string[];
let answers: string[];
/** What each question is answered with; an Error fails it. */
let found: readonly string[] | Error;
let lookup: HoldLookup<AlertMatchers>;

beforeEach(() => {
  now = 0;
  asked = [];
  answers = [];
  found = [];
  lookup = newLookup(async (matchers) => {
    asked.push(matchers.join());
    if (found instanceof Error) throw found;
    return found;
  });
});

function newLookup(ask: Ask<AlertMatchers> | undefined, signal = new AbortController().signal) {
  const onAnswer = (pool: string) => void answers.push(pool);
  const log = pino({ level: 'silent' });
  return monitoringLookups(ask === undefined ? {} : { askAlerts: ask }, {
    onAnswer,
    log,
    signal,
    now: () => now,
  }).alerts;
}

/** Asks, and asks again once the answer has caused the next pass. */
async function answered(hold: AlertHold = CRITICAL) {
  const before = answers.length;
  expect(lookup.stateOf('worker', hold)).toEqual({ kind: 'asking' });
  await expect.poll(() => answers.length).toBe(before + 1);
  return lookup.stateOf('worker', hold);
}

describe('the state of alerts', () => {
  it.each<[string, readonly string[] | Error, object]>([
    ['none', [], { kind: 'clear' }],
    ['one', ['NodeDown'], { kind: 'holds', why: '1 alert is firing: NodeDown' }],
    ['one of many hosts', ['NodeDown', 'NodeDown'], { kind: 'holds', why: '1 alert is firing: NodeDown' }],
    [
      'many',
      ['g', 'f', 'e', 'd', 'c', 'b', 'a'],
      { kind: 'holds', why: '7 alerts are firing: a, b, c, d, e and 2 more' },
    ],
    ['no answer', new Error('connection refused'), { kind: 'unknown', why: 'connection refused' }],
  ])('%s', async (_what, given, state) => {
    found = given;
    expect(await answered()).toEqual(state);
  });

  it('is that of every set of matchers', async () => {
    await answered(TWO);
    expect(asked).toEqual(['severity="critical"', 'team="storage"']);
  });

  it('is not asked for where nothing or nobody can be asked', () => {
    expect(lookup.stateOf('worker', { kind: 'none' })).toEqual({ kind: 'clear' });
    expect(lookup.stateOf('worker', { kind: 'unreadable' })).toMatchObject({ kind: 'unknown' });
    expect(newLookup(undefined).stateOf('worker', CRITICAL)).toEqual({
      kind: 'unknown',
      why: 'the operator has no --alertmanager-url',
    });
    expect(asked).toEqual([]);
  });
});

describe('an answer', () => {
  it('is good for 15 seconds; an older one starts nothing', async () => {
    await answered();
    now = 14_999;
    expect(lookup.stateOf('worker', CRITICAL)).toEqual({ kind: 'clear' });
    expect(asked).toHaveLength(1);
    now = 15_000;
    found = ['NodeDown'];
    expect(await answered()).toMatchObject({ kind: 'holds' });
  });

  it('that holds updates back is told until there is another one', async () => {
    found = ['NodeDown'];
    await answered();
    now = 60_000;
    found = [];
    expect(lookup.stateOf('worker', CRITICAL)).toMatchObject({ kind: 'holds' });
    await expect.poll(() => answers.length).toBe(2);
    expect(lookup.stateOf('worker', CRITICAL)).toEqual({ kind: 'clear' });
  });

  it('is for one question, and one pool', async () => {
    await answered();
    expect(await answered(TWO)).toEqual({ kind: 'clear' });
    expect(lookup.stateOf('infra', TWO)).toEqual({ kind: 'asking' });
    await expect.poll(() => answers).toEqual(['worker', 'worker', 'infra']);
  });

  it('is awaited by one question at a time', async () => {
    for (let look = 0; look < 3; look += 1) lookup.stateOf('worker', CRITICAL);
    await expect.poll(() => answers.length).toBe(1);
    expect(asked).toHaveLength(1);
  });

  it('that comes after the end causes no pass', async () => {
    const end = new AbortController();
    const ends = Promise.withResolvers<readonly string[]>();
    const ended = newLookup(() => ends.promise, end.signal);
    ended.stateOf('worker', CRITICAL);
    end.abort();
    ends.resolve([]);
    await ends.promise;
    await expect.poll(() => ended.stateOf('worker', CRITICAL).kind).toBe('clear');
    expect(answers).toEqual([]);
  });
});

describe('queries', () => {
  const QUERIES = readQueries(['up == 0', 'absent(up)']);
  const lookUp = (askQueries: Ask<string> | undefined) =>
    monitoringLookups(askQueries === undefined ? {} : { askQueries }, {
      onAnswer: (pool) => void answers.push(pool),
      log: pino({ level: 'silent' }),
      signal: new AbortController().signal,
      now: () => now,
    }).queries;

  it.each<[readonly string[], object]>([
    [[], { kind: 'clear' }],
    [['up == 0'], { kind: 'holds', why: '1 query has a result: up == 0' }],
    [['up == 0', 'absent(up)'], { kind: 'holds', why: '2 queries have a result: absent(up), up == 0' }],
  ])('of which %j have a result', async (having, state) => {
    const queries = lookUp(async (query) => having.filter((each) => each === query));
    expect(queries.stateOf('worker', QUERIES)).toEqual({ kind: 'asking' });
    await expect.poll(() => answers.length).toBe(1);
    expect(queries.stateOf('worker', QUERIES)).toEqual(state);
  });

  it('of which one fails', async () => {
    const queries = lookUp(async (query) => {
      if (query === 'up == 0') return [];
      throw new Error('no store answers');
    });
    queries.stateOf('worker', QUERIES);
    await expect.poll(() => answers.length).toBe(1);
    expect(queries.stateOf('worker', QUERIES)).toEqual({ kind: 'unknown', why: 'no store answers' });
  });

  it('that nobody can be asked', () => {
    const why = 'the operator has no --prometheus-url';
    expect(lookUp(undefined).stateOf('worker', QUERIES)).toEqual({ kind: 'unknown', why });
  });
});
