import { beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from './api-client.ts';
import { FailingSteps, formatFailingOn, type StepObject } from './failing-steps.ts';

const NODE: StepObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' } };
const DOING = 'carrying out its update';
const answer = (status: number, reason = '') =>
  new ApiError(status, 'patch Node a', { reason, message: 'no' });

let now: number;
let reported: string[];
let changes: string[];
let steps: FailingSteps;

beforeEach(() => {
  now = 1_000_000;
  reported = [];
  changes = [];
  steps = new FailingSteps({
    now: () => now,
    random: () => 0,
    onReport: (step) => void reported.push(formatFailingOn(step)),
    onChange: ({ metadata }) => void changes.push(metadata.name),
  });
});

/** The step fails from now on, every ten seconds. */
function failFor(ms: number, error: unknown): void {
  for (const until = now + ms; now <= until; now += 10_000) steps.failed(NODE, DOING, error);
}

describe('a step that fails', () => {
  it.each([
    [403, '', 15_000],
    [422, '', 15_000],
    [429, '', 180_000],
    [500, '', 180_000],
    [409, 'Conflict', 600_000],
  ])('with %i %s is reported after %i ms, once', (status, reason, after) => {
    failFor(after - 20_000, answer(status, reason));
    expect([reported, steps.reported()]).toEqual([[], []]);
    failFor(60_000, answer(status, reason));
    expect(reported).toEqual(['Node a: carrying out its update fails: patch Node a: no']);
    expect(steps.reported()).toHaveLength(1);
    expect(changes).toEqual(['a']);
  });

  it('stays reported when it fails for another reason, which is reported too, and until it is over', () => {
    failFor(200_000, answer(429));
    failFor(0, answer(500));
    failFor(0, answer(500));
    expect(steps.reported()).toHaveLength(1);
    expect(reported).toHaveLength(2);
    steps.over(NODE, DOING);
    expect(steps.reported()).toEqual([]);
    expect(changes).toEqual(['a', 'a', 'a']);
    steps.over(NODE, DOING);
    expect(changes).toHaveLength(3);
  });

  it('and is over before that is not reported', () => {
    failFor(100_000, answer(500));
    steps.over(NODE, DOING);
    failFor(100_000, answer(500));
    expect([reported, changes]).toEqual([[], []]);
  });

  it('waits longer after each failure, a minute at most, and for what the server asks for', () => {
    const waits = Array.from({ length: 13 }, () => steps.failed(NODE, DOING, answer(500)).retryAt - now);
    expect(waits.slice(0, 3)).toEqual([50, 100, 200]);
    expect(waits.at(-1)).toBe(60_000);
    const body = { message: 'later', details: { retryAfterSeconds: 120 } };
    expect(steps.failed(NODE, DOING, new ApiError(429, 'x', body)).retryAt - now).toBe(120_000);
  });

  it('is reported in time even if it is not tried again until then', () => {
    steps.failed(NODE, DOING, answer(403));
    now += 15_000;
    expect(steps.reported()).toHaveLength(1);
    expect(reported).toHaveLength(1);
  });

  it('is forgotten when nobody tries it any more', () => {
    failFor(20_000, answer(403));
    now += 600_000;
    expect(steps.reported()).toEqual([]);
    expect(changes).toEqual(['a', 'a']);
  });

  it('is known to the next process from what the status has, and reported no second time', () => {
    const failure = { kind: 'Refused', why: 'patch Node a: no' } as const;
    steps.restore([{ object: NODE, doing: DOING, failure, since: now - 3_600_000 }]);
    expect(steps.reported()).toHaveLength(1);
    failFor(0, answer(403));
    expect(reported).toEqual([]);
    expect(steps.reported()[0]?.since).toBe(now - 10_000 - 3_600_000);
    steps.restore([{ object: NODE, doing: DOING, failure, since: 0 }]);
    expect(steps.reported()[0]?.since).not.toBe(0);
  });
});
