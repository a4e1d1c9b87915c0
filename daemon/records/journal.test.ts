import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseDigestedPullspec } from '../../api/references.ts';
import type { Current, StandardCurrent } from './current.ts';
import { RecordError } from './durable-json.ts';
import { advance, begin, type JournalEntry, leftOnDisk, openJournal } from './journal.ts';

async function emptyRoot(): Promise<string> {
  const root = await mkdtemp(path.join(tmpdir(), 'journal-'));
  onTestFinished(() => rm(root, { recursive: true }));
  return root;
}

const standard: StandardCurrent = {
  version: 1,
  mode: 'Standard',
  config: 'rendered-2',
  rendered: {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: { name: 'rendered-2' },
    spec: {},
  },
  kernelArguments: [],
};
const layered: Current = {
  version: 1,
  mode: 'Layered',
  config: 'rendered-2',
  image: parseDigestedPullspec(`r.io/os@sha256:${'1'.repeat(64)}`),
};

interface Difference {
  readonly step?: 'applying' | 'rebooting';
  readonly plan?: JournalEntry['plan'];
  readonly next?: JournalEntry['next'];
}
const entry = (more: Difference = {}): JournalEntry => ({
  version: 1,
  step: 'applying',
  next: { ...standard, config: 'rendered-2' },
  plan: {
    config: 'rendered-2',
    staged: true,
    actions: [{ type: 'Restart', service: 'a.service' }],
    causes: [],
    source: 'test',
  },
  bootID: 'boot-1',
  startedAt: '2026-01-01T00:00:00Z',
  ...more,
});

test('what was written is read, and gone once it is cleared', async () => {
  const root = await emptyRoot();
  const journal = openJournal(root);
  expect(await journal.read()).toBeUndefined();
  await journal.write(entry());
  expect(await openJournal(root).read()).toEqual(entry());
  await journal.clear();
  expect(await journal.read()).toBeUndefined();
  expect(await readdir(path.join(root, 'var/lib/shale'))).toEqual([]);
});

test('clearing what was never written is nothing', async () => {
  await openJournal(await emptyRoot()).clear();
});

test('applying may become rebooting', async () => {
  const journal = openJournal(await emptyRoot());
  await journal.write(entry());
  await journal.write(entry({ step: 'rebooting' }));
  expect((await journal.read())?.step).toBe('rebooting');
});

test('an update ends, or rolls back, once its target has booted', async () => {
  const journal = openJournal(await emptyRoot());
  const verifying = { bootID: 'boot-2', sinceMs: 1, boots: 1 };
  await journal.write(entry({ step: 'rebooting' }));
  await journal.write({ ...entry(), step: 'verifying', verifying });
  await journal.write({ ...entry(), step: 'verifying', verifying: { ...verifying, boots: 2 } });
  await expect(journal.write(entry({ step: 'rebooting' }))).rejects.toThrow(
    "is verifying and can't be rebooting",
  );
  await journal.write({ ...entry(), step: 'rollingBack', failedBoot: 'boot-2', why: 'sick' });
  await expect(journal.write({ ...entry(), step: 'verifying', verifying })).rejects.toThrow(TypeError);
  expect(await journal.read()).toMatchObject({ step: 'rollingBack', failedBoot: 'boot-2', why: 'sick' });
});

test.each<[string, Difference]>([
  ['rebooting does not become applying', {}],
  [
    'another update does not begin before this one is over',
    { step: 'rebooting', plan: { ...entry().plan, config: 'rendered-3' } },
  ],
  ['another mode neither', { step: 'rebooting', next: layered }],
])('%s', async (_name, next) => {
  const journal = openJournal(await emptyRoot());
  await journal.write(entry({ step: 'rebooting' }));
  await expect(journal.write(entry(next))).rejects.toThrow(TypeError);
  expect(await journal.read()).toEqual(entry({ step: 'rebooting' }));
});

test('an update that only a reboot ends may give way to another that reboots', async () => {
  const journal = openJournal(await emptyRoot());
  const reboot = { ...entry().plan, actions: [{ type: 'Reboot' as const }] };
  await journal.write(entry({ plan: reboot }));
  await expect(journal.write(entry({ plan: { ...entry().plan, config: 'rendered-3' } }))).rejects.toThrow(
    TypeError,
  );
  await journal.write(entry({ plan: { ...reboot, config: 'rendered-3' } }));
  expect((await journal.read())?.plan.config).toBe('rendered-3');
});

test.each(['', '{', '{"version":2}', '[]'])('a journal that says %j is no journal', async (text) => {
  const root = await emptyRoot();
  await mkdir(path.join(root, 'var/lib/shale'), { recursive: true });
  await writeFile(path.join(root, 'var/lib/shale/journal.json'), text);
  await expect(openJournal(root).read()).rejects.toThrow(RecordError);
});

const verifying = { bootID: 'boot-2', sinceMs: 1, boots: 1 };
const facts = { brought: true, firstBoot: true, withoutGrant: true, leaseHolder: 'operator' } as const;
/** An entry at each step, with all that it can have. */
const at = {
  applying: { ...entry(), ...facts, step: 'applying', written: true, onDisk: layered },
  rebooting: {
    ...entry(),
    ...facts,
    step: 'rebooting',
    rebootingSince: '2026-01-01T00:00:01Z',
    rebootRequests: 2,
  },
  verifying: { ...entry(), ...facts, step: 'verifying', verifying, notBrought: 'no room' },
  rollingBack: {
    ...entry(),
    ...facts,
    step: 'rollingBack',
    failedBoot: 'boot-2',
    why: 'sick',
    rebootRequests: 2,
  },
} as const satisfies Record<JournalEntry['step'], JournalEntry>;
const own = {
  applying: {},
  rebooting: { rebootingSince: '2026-01-02T00:00:00Z' },
  verifying: { verifying: { ...verifying, boots: 2 } },
  rollingBack: { failedBoot: 'boot-3', why: 'worse' },
};
type Step = JournalEntry['step'];
const steps = Object.keys(at) as readonly Step[];

test.each(
  steps.flatMap((before) =>
    steps.map((next) => [before, next, steps.indexOf(next) >= steps.indexOf(before)] as const),
  ),
)('%s may become %s: %s', (before, next, isAllowed) => {
  const advanced = () => advance<Step>(at[before], next, own[next]);
  if (!isAllowed) return expect(advanced).toThrow(`is ${before} and can't be ${next} again`);
  expect(advanced()).toEqual({ ...entry(), ...facts, ...own[next], step: next });
});

test('an update begins with what is known of it', () => {
  const { plan, next } = entry();
  const known = { bootID: 'boot-1', withoutGrant: true } as const;
  expect(begin('rebooting', { plan, next }, known)).toEqual({
    version: 1,
    step: 'rebooting',
    plan,
    next,
    ...known,
    startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
  });
});

describe('what an update that only a reboot ends has left on the disk', () => {
  const other = {
    plan: { ...entry().plan, config: 'rendered-3' },
    next: { ...standard, config: 'rendered-3' },
  };
  const onDisk = { ...standard, config: 'rendered-1' };

  test.each<[string, JournalEntry | undefined, object]>([
    ['nothing, where there was none', undefined, {}],
    ['nothing, where its config was not written', entry(), {}],
    ['its config', { ...entry(), step: 'applying', written: true }, { onDisk: standard }],
    ['the content of its image', entry({ next: layered }), { onDisk: layered }],
    [
      'what it has found itself, where it wrote nothing',
      { ...entry(), step: 'applying', onDisk },
      { onDisk },
    ],
  ])('is %s', (_what, before, left) => {
    expect(leftOnDisk(before, other)).toEqual(left);
  });

  test('stays known where the same update is taken up again', () => {
    const before = { ...entry(), step: 'applying', written: true, onDisk } as const;
    expect(leftOnDisk(before, entry())).toEqual({ written: true, onDisk });
  });
});
