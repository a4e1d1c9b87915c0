import { describe, expect, it } from 'vitest';
import type { MachineOSBuild } from '../../api/machine-os-build.ts';
import type { SettingValues } from '../../api/pool-settings/table.ts';
import type { BaseVulnerabilities } from '../../api/vulnerabilities.ts';
import { aMachineConfigNode, aNode, aState, someSettings } from '../../test/fixtures/objects.ts';
import { targetBases, vulnerabilities } from './vulnerabilities.ts';

const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const [OLD, NEW, OTHER] = ['1', '2', '3'].map((digit) => `r.example.com/os/base@${digest(digit)}`) as [
  string,
  string,
  string,
];
const IMAGE = `r.example.com/os/worker@${digest('a')}`;

const entry = (given: Partial<BaseVulnerabilities> = {}): BaseVulnerabilities => ({
  from: OLD,
  to: NEW,
  result: 'Compared',
  message: 'two reports',
  checkedAt: '2026-03-01T00:00:00Z',
  brought: {},
  fixed: {},
  worst: [],
  ...given,
});
const noReport = (from = OLD) => ({
  from,
  to: NEW,
  result: 'NoReport' as const,
  message: `no report of ${from}`,
  checkedAt: '',
});
const HIGH = entry({
  brought: { high: 2, low: 5 },
  worst: [
    { id: 'CVE-2026-0001', severity: 'high', package: 'libssl3' },
    { id: 'CVE-2026-0002', severity: 'high', package: '' },
    { id: 'CVE-2026-0003', severity: 'low', package: 'curl' },
  ],
});
const build = (status: Partial<NonNullable<MachineOSBuild['status']>>, succeeded = true) =>
  ({
    status: {
      digestedImagePushSpec: IMAGE,
      baseImage: NEW,
      ...status,
      conditions: [{ type: 'Succeeded', status: succeeded ? 'True' : 'False' }],
    },
  }) as MachineOSBuild;

/** Nodes by their base image. */
function held(
  holds: SettingValues['holds'],
  compared: readonly BaseVulnerabilities[],
  bases: Readonly<Record<string, string | undefined>> = { a: OLD },
  builds: readonly MachineOSBuild[] = [build({ vulnerabilities: [...compared] })],
) {
  const nodes = Object.entries(bases).map(([name, baseImage]) => ({
    node: aNode(name),
    machineConfigNode: aMachineConfigNode(name, {}, baseImage === undefined ? {} : { baseImage }),
  }));
  const found = vulnerabilities.hold(
    { settings: someSettings({ holds }), gateInputs: { targetBases: targetBases(builds, IMAGE) }, nodes },
    Object.keys(bases).map((name) => aState(name)),
  );
  return found && { names: [...found.held].join(), reason: found.hold?.reason, message: found.hold?.message };
}

describe('a pool holds updates that bring vulnerabilities', () => {
  it.each<[string, SettingValues['holds'], readonly BaseVulnerabilities[], string | undefined]>([
    ['no limit', {}, [HIGH], undefined],
    ['nothing that is brought', { vulnerabilities: 'low' }, [entry()], undefined],
    ['less than the limit', { vulnerabilities: 'critical' }, [HIGH], undefined],
    ['the limit', { vulnerabilities: 'high' }, [HIGH], 'VulnerabilitiesBrought'],
    ['more than the limit', { vulnerabilities: 'low' }, [HIGH], 'VulnerabilitiesBrought'],
    [
      'one that nobody has rated',
      { vulnerabilities: 'medium' },
      [entry({ brought: { unknown: 1 } })],
      undefined,
    ],
    [
      'one that nobody has rated, with the lowest limit',
      { vulnerabilities: 'low' },
      [entry({ brought: { unknown: 1 } })],
      'VulnerabilitiesBrought',
    ],
    [
      'one that is negligible',
      { vulnerabilities: 'low' },
      [entry({ brought: { negligible: 1 } })],
      undefined,
    ],
    ['no report', { vulnerabilities: 'high' }, [noReport()], 'VulnerabilitiesUnknown'],
    ['nothing that was compared yet', { vulnerabilities: 'high' }, [], 'VulnerabilitiesUnknown'],
    [
      'what another base image brings',
      { vulnerabilities: 'high' },
      [{ ...HIGH, from: OTHER }],
      'VulnerabilitiesUnknown',
    ],
    [
      'what was accepted',
      { vulnerabilities: 'high', acceptedBaseImages: [digest('9'), digest('2')] },
      [HIGH],
      undefined,
    ],
    [
      'what was accepted of another',
      { vulnerabilities: 'high', acceptedBaseImages: [digest('1')] },
      [HIGH],
      'VulnerabilitiesBrought',
    ],
  ])('by %s', (_what, holds, compared, reason) => {
    expect(held(holds, compared)?.reason).toBe(reason);
  });

  it.each<[string, readonly string[], boolean]>([
    ['the index', ['2'], false],
    ['each of its images', ['3', '4'], false],
    ['the image of one architecture', ['3'], true],
  ])('takes an index of base images once %s is accepted: %j, held: %j', (_what, accepted, isHeld) => {
    const instances = ['3', '4'].map((each) => ({ baseImage: `quay.io/base@${digest(each)}` }));
    const index = build({ vulnerabilities: [HIGH], instances } as Partial<
      NonNullable<MachineOSBuild['status']>
    >);
    const holds = { vulnerabilities: 'high', acceptedBaseImages: accepted.map(digest) } as const;
    expect(held(holds, [], { a: OLD }, [index]) !== undefined).toBe(isHeld);
  });

  it('says what is brought, and how to take it all the same', () => {
    expect(held({ vulnerabilities: 'high' }, [HIGH])?.message).toBe(
      `updates wait for vulnerabilities (spec.shale.holds): the new base image brings 2 high, such as CVE-2026-0001 (libssl3), CVE-2026-0002; to take it all the same, add ${digest('2')} to spec.shale.holds.acceptedBaseImages`,
    );
    expect(held({ vulnerabilities: 'high' }, [noReport()])?.message).toContain(
      `it is not known what the new base image brings: no report of ${OLD}; to take it`,
    );
  });

  it('lets nodes through that have the base image already, whatever a mirror calls it', () => {
    const mirrored = `mirror.example.com/base@${digest('2')}`;
    expect(held({ vulnerabilities: 'high' }, [HIGH], { a: mirrored, b: NEW })).toBeUndefined();
  });

  it('holds each node by what it runs, and says first what is known', () => {
    const bases = { a: OTHER, b: OLD, c: NEW, d: undefined };
    const found = held({ vulnerabilities: 'high' }, [noReport(OTHER), HIGH], bases);
    expect([found?.names, found?.reason]).toEqual(['a,b,d', 'VulnerabilitiesBrought']);
    const alone = held({ vulnerabilities: 'high' }, [], { d: undefined });
    expect(alone?.message).toContain('it is not known which base image the node runs');
  });

  it('is open in standard mode', () => {
    const states = [aState('a')];
    const settings = someSettings({ holds: { vulnerabilities: 'low' } });
    expect(vulnerabilities.hold({ settings, gateInputs: {}, nodes: [] }, states)).toBeUndefined();
  });
});

describe('the base images of a target', () => {
  it('are those of the index and of each image in it', () => {
    const instances = [{ architecture: 'arm64', image: IMAGE, baseImage: OTHER }];
    expect(targetBases([build({ instances: instances as never })], IMAGE).bases).toEqual([
      digest('2'),
      digest('3'),
    ]);
  });

  it('are of builds of the image that succeeded', () => {
    const others = [
      build({ vulnerabilities: [HIGH] }, false),
      build({ digestedImagePushSpec: OLD as never }),
    ];
    expect(targetBases(others, IMAGE)).toEqual({ bases: [], compared: [] });
  });
});
