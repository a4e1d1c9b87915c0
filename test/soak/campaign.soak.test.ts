/**
 * Random faults on a whole sandbox for minutes or hours; CI runs a sample. Its promises are those of the rollout's
 * model.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import type { NodeKindName } from '../../workshop/sandbox/node-kind.ts';
import { patience } from '../fixtures/patience.ts';
import { seed } from '../fixtures/sample.ts';
import { noDirectoryNodes } from '../fixtures/test-node.ts';
import { keepTexts, readRemains, runCampaign } from './campaign.ts';
import { formatSummary, summarize } from './history/summary.ts';
import { seconds, timeline } from './history/timeline.ts';
import { checkHistory } from './invariants/check-history.ts';
import { Recorder } from './world/recorder.ts';
import { scriptedNames } from './world/scripted-nodes.ts';
import { startWorld } from './world/world.ts';

/** Minutes of faults; a sample where they are not given. */
const minutes = Number(process.env['SHALE_SOAK_MINUTES'] ?? 0);
const nodes = process.env['SHALE_SOAK_NODES'] ?? 'directory';
const kind: NodeKindName = nodes === 'systemd' ? 'systemd' : 'directory';
/** Beside the machines, which then are directories. */
const scripted = nodes === 'scripted' ? scriptedNames(200) : [];
const KEPT = path.join(import.meta.dirname, '../../.shale/soak');

const SAMPLE = {
  totalMs: 0,
  roundMs: 30_000,
  everyMs: 1_500,
  longestMs: 5_000,
  longestPauseMs: 5_000,
  calmMs: patience(180_000),
};
const LONG = {
  totalMs: minutes * 60_000,
  roundMs: 90_000,
  everyMs: 2_500,
  longestMs: 30_000,
  longestPauseMs: 90_000,
  calmMs: patience(300_000),
};
const options = minutes > 0 ? LONG : SAMPLE;
const LIMIT_MS = patience(300_000) + options.totalMs * 2 + 3 * (options.roundMs + options.calmMs);

// The history of a campaign is kept: CONTRIBUTING.md says how to read it.
test.skipIf(noDirectoryNodes !== undefined)(
  'whatever happens to a cluster, Shale keeps its promises',
  { timeout: LIMIT_MS },
  async () => {
    const dir = await mkdtemp(path.join(tmpdir(), 'shale-soak-'));
    const kept = path.join(KEPT, String(seed));
    const recorder = new Recorder(kept);
    const signal = AbortSignal.timeout(LIMIT_MS - 30_000);
    const world = await startWorld({ dir, kind, scripted, recorder, signal });
    const campaign = { ...options, seed, scripted, signal: AbortSignal.any([signal, world.failed]) };
    const ends = await Promise.allSettled([
      runCampaign(world, campaign).finally(() => readRemains(world).finally(() => world.stop())),
    ]);
    // Also of a campaign that broke off: what it has seen by then may say why.
    const { history } = recorder;
    const violations = checkHistory(history);
    const lines = [
      ...violations.map(({ invariant, at, message }) => `${seconds(at)} ${invariant}: ${message}`),
      ...ends.flatMap((end) => (end.status === 'rejected' ? [`broke off: ${inspect(end.reason)}`] : [])),
    ];
    const summary = [`SHALE_SEED=${seed}, ${nodes} nodes`, ...formatSummary(summarize(history, violations))];
    await keepTexts(kept, { 'timeline.log': timeline(history), 'summary.log': [...summary, ...lines] });
    process.stderr.write(`${summary.join('\n')}\nits history is in ${kept}\n`);
    expect(lines).toEqual([]);
    await rm(dir, { recursive: true });
  },
);
