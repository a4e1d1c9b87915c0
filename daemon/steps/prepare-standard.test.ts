import { describe, expect, test } from 'vitest';
import type { ClusterPolicies } from '../../api/disruption-policy.ts';
import { effectivePolicies, policyDigest } from '../../disruption/effective-policies.ts';
import {
  APP,
  type Case,
  file,
  policies,
  prepare,
  renderedWith,
  runs,
  type Standard,
  stock,
} from '../../test/fixtures/prepared-standard.ts';
import { deployment, imageOf, standard } from '../../test/fixtures/step-context.ts';
import type { JournalEntry } from '../records/journal.ts';

describe('what a config asks of the node', () => {
  test('is what the policies say of the difference, and nothing is staged', async () => {
    const { prepared, done } = await prepare({ current: runs('old'), disk: 'old' });
    expect(await prepared).toMatchObject({
      plan: {
        config: 'rendered-2',
        staged: true,
        actions: [],
        source: 'the difference between the rendered configs',
      },
      next: { mode: 'Standard', config: 'rendered-2', baseImage: stock, kernelArguments: [] },
      policyDigest: policyDigest(policies),
      softRebootAllowed: false,
    });
    expect((await prepared).next).not.toHaveProperty('rendered.status');
    expect(done).toEqual(['unstage']);
  });

  test('is what the policies of its pool say, which have the digest that the operator named', async () => {
    const [actions, path] = [[{ type: 'None' as const }], APP];
    const own: ClusterPolicies = { files: [{ path, actions, source: 'Admin', policy: 'edge' }] };
    const poolPolicies = [{ policyDigest: 'sha256:not-looked-at', pools: ['edge'], policies: own }];
    const given = { current: runs('old'), disk: 'old', policyDigest: policyDigest(own), poolPolicies };
    expect((await (await prepare(given)).prepared).plan).toMatchObject({
      actions: [],
      causes: [{ rule: `policy for ${APP} (edge)` }],
    });
  });

  test('is what its owner marked, before and after, and the node records how the config is to be read', async () => {
    const marked = (config: Standard): Standard => ({
      ...config,
      rendered: {
        ...config.rendered,
        metadata: {
          name: config.config,
          annotations: {
            'shale.dev/actions': JSON.stringify({ [APP]: ['Reload(app.service)'] }),
            'shale.dev/transitions': 'of the object in the cluster',
          },
        },
      },
    });
    const rendered = marked(standard('rendered-2', file('new'))).rendered;
    const given = { rendered, policies: {}, disk: 'old' };
    const { plan, next } = await (await prepare({ ...given, current: marked(runs('old')) })).prepared;
    expect(plan).toMatchObject({ actions: [{ type: 'Reload', service: 'app.service' }] });
    expect(next).toMatchObject({ rendered: { metadata: { name: 'rendered-2' } } });
    expect(Object.keys(next.mode === 'Standard' ? (next.rendered.metadata.annotations ?? {}) : {})).toEqual([
      'shale.dev/actions',
    ]);
    // A record of an earlier version has no marks.
    expect((await (await prepare({ ...given, current: runs('old') })).prepared).plan.actions).toEqual([
      { type: 'Reboot' },
    ]);
  });

  test('is read with the limits that it was rendered with', async () => {
    const big = standard('rendered-2', file('x'.repeat(17 * 1024 * 1024))).rendered;
    const annotations = { 'shale.dev/limits': JSON.stringify({ fileBytes: 2 ** 25, configBytes: 2 ** 26 }) };
    const rendered = { ...big, metadata: { name: 'rendered-2', annotations } };
    expect((await (await prepare({ rendered })).prepared).plan.actions).toEqual([]);
  });

  test('is a reboot where other policies are in force than the operator named', async () => {
    const { prepared } = await prepare({ current: runs('old'), disk: 'old', policyDigest: 'sha256:other' });
    expect((await prepared).plan).toMatchObject({
      actions: [{ type: 'Reboot' }],
      source: expect.stringContaining('the policies in force are not the ones that the operator named'),
    });
  });

  test("is a reload of the container runtime's unit that the policies in force name", async () => {
    const conf = (mirror: string) => [
      {
        path: '/etc/containers/registries.conf',
        content: `[[registry]]\nlocation = "r.io"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = "${mirror}"\n`,
      },
    ];
    const containerd = effectivePolicies(undefined, { containerRuntimeUnit: 'containerd.service' });
    const { prepared } = await prepare({
      rendered: standard('rendered-2', conf('m.io')).rendered,
      policies: containerd,
    });
    expect((await prepared).plan.actions).toEqual([{ type: 'Reload', service: 'containerd.service' }]);
  });

  test('of a fresh node is what its files ask, whatever it has booted', async () => {
    const { prepared, done } = await prepare();
    expect((await prepared).plan.actions).toEqual([]);
    expect((await prepared).next.baseImage).toBe(stock);
    expect(done).toEqual(['unstage']);
  });

  test('that has an osImageURL is no change on a fresh node', async () => {
    const { prepared } = await prepare({ rendered: renderedWith({ osImageURL: stock }) });
    expect((await prepared).plan.actions).toEqual([]);
  });

  test('is a reboot where a live update could not be finished', async () => {
    const stuck = { plan: { config: 'rendered-9' } } as JournalEntry;
    const { prepared } = await prepare({ current: runs('old'), disk: 'half', stuck });
    expect((await prepared).plan).toMatchObject({
      actions: [{ type: 'Reboot' }],
      source: expect.stringContaining('rendered-9'),
    });
  });
});

describe('the deployment that a config needs', () => {
  test.each<[string, Case, string]>([
    [
      'of another OS image',
      { current: runs('old'), disk: 'old', osImage: imageOf('9') },
      `stage ${imageOf('9')} true {"remove":[],"add":[]}`,
    ],
    [
      'with kernel arguments',
      { current: runs('old'), disk: 'old', rendered: renderedWith({ kernelArguments: ['quiet'] }) },
      `stage ${stock} true {"remove":[],"add":["quiet"]}`,
    ],
    [
      'without those of before',
      {
        current: runs('old', {
          kernelArguments: ['quiet'],
          rendered: renderedWith({ kernelArguments: ['quiet'] }, standard('rendered-1', file('old'))),
        }),
        disk: 'old',
        status: { booted: deployment('/booted', { image: stock, kernelArguments: ['rw', 'quiet'] }) },
      },
      `stage ${stock} true {"remove":["quiet"],"add":[]}`,
    ],
    [
      'of the stock image of a layered one',
      {
        current: {
          version: 1,
          mode: 'Layered',
          config: 'rendered-1',
          image: imageOf('1'),
          baseImage: imageOf('5'),
          stockImage: stock,
        },
      },
      `stage ${stock} true {"remove":[],"add":[]}`,
    ],
    [
      'of the base of a layered image without another stock image',
      {
        current: {
          version: 1,
          mode: 'Layered',
          config: 'rendered-1',
          image: imageOf('1'),
          baseImage: imageOf('5'),
        },
      },
      `stage ${imageOf('5')} true {"remove":[],"add":[]}`,
    ],
    [
      'of the OS image that the spec names, on the way out of layering',
      {
        current: {
          version: 1,
          mode: 'Layered',
          config: 'rendered-1',
          image: imageOf('1'),
          stockImage: stock,
        },
        osImage: imageOf('9'),
      },
      `stage ${imageOf('9')} true {"remove":[],"add":[]}`,
    ],
  ])('is one %s', async (_name, given, staged) => {
    const { prepared, done } = await prepare(given);
    expect((await prepared).plan.actions).toEqual([{ type: 'Reboot' }]);
    expect(done).toEqual([staged]);
  });

  describe('where the booted one has not the kernel arguments of the config', () => {
    const quiet = { kernelArguments: ['quiet'] };
    const named = (config: string, content: string) => renderedWith(quiet, standard(config, file(content)));
    const drifted = {
      current: runs('old', { ...quiet, rendered: named('rendered-1', 'old') }),
      rendered: named('rendered-2', 'new'),
      disk: 'old',
      status: { booted: deployment('/booted', { image: stock, kernelArguments: ['rw'] }) },
    };

    test('is one that has them, if the update reboots anyway', async () => {
      const { prepared, done } = await prepare({ ...drifted, policyDigest: 'sha256:other' });
      expect((await prepared).plan.actions).toEqual([{ type: 'Reboot' }]);
      expect(done).toEqual([`stage ${stock} true {"remove":[],"add":["quiet"]}`]);
    });

    test('is the booted one, if the update is live', async () => {
      const { prepared, done } = await prepare(drifted);
      expect((await prepared).plan.actions).toEqual([]);
      expect(done).toEqual(['unstage']);
    });

    test('takes a reboot of its own, if Shale has staged them for a target that was withdrawn', async () => {
      const { prepared, done } = await prepare({
        current: runs('new', { kernelArguments: ['audit=0'] }),
        rendered: standard('rendered-1', file('new')).rendered,
        disk: 'new',
      });
      expect((await prepared).plan).toMatchObject({
        actions: [{ type: 'Reboot' }],
        source: expect.stringMatching(
          /^the node booted with the kernel arguments audit=0 instead of those of rendered-\d$/,
        ),
      });
      expect(done).toEqual([`stage ${stock} true {"remove":["audit=0"],"add":[]}`]);
    });
  });

  test('may be booted softly where the pool allows it', async () => {
    const { prepared } = await prepare({
      current: runs('old'),
      disk: 'old',
      osImage: imageOf('9'),
      spec: { softReboot: true },
    });
    expect(await prepared).toMatchObject({ softRebootAllowed: true, plan: { softReboot: true } });
  });

  test('switches to standard mode by a reboot', async () => {
    const { prepared } = await prepare({
      current: { version: 1, mode: 'Layered', config: 'rendered-1', image: imageOf('1'), baseImage: stock },
    });
    expect((await prepared).plan.source).toBe('the node switches from layered to standard mode');
  });
});
