import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { execa } from 'execa';
import { type DigestedPullspec, repositoryOf } from '../../../../api/references.ts';
import { readTreeRecord } from '../../../../builder/steps/tree-of-base.ts';
import { describeImage } from '../../../../image/append.ts';
import { contentsOf } from '../../../../image/contents/image-contents.ts';
import type { Package } from '../../../../image/contents/package.ts';
import { writeLayer } from '../../../../image/layer/write-layer.ts';
import { pushAppended } from '../../../../image/push-image.ts';
import { byDigest, parseReference } from '../../../../image/reference.ts';
import { stockMachineConfig } from '../../cluster-objects.ts';
import { dpkgStatus } from '../../node/stock-image.ts';
import { expectActions, expectOneAtATime, expectOneReboot } from '../expect-nodes.ts';
import { buildOf, newConfig, rollOut } from '../roll-out.ts';
import type { TourContext, TourStep } from '../step.ts';

const SHALE = path.join(import.meta.dirname, '../../../../cli/main.ts');
const STATUS = '/var/lib/dpkg/status';
const ADDED: Package = { name: 'nftables', version: '1.1.3-1', architecture: 'all' };

/** Another base image is another digest. What is in it is said before a node has it. */
export const newBase: TourStep = {
  title: 'A new base image: the plan names its packages before a node reboots into it',
  async run(tour) {
    const packages = await packagesOf(tour);
    const [old, ...others] = packages;
    if (old === undefined) throw new Error('the stock image has no packages');
    const upgraded = { ...old, version: `${old.version}+1` };
    const image = await pushBase(tour, [...others, upgraded, ADDED]);
    const plan = await planOf(tour, image);
    const lines = [
      'base image: 2 packages (1 added, 1 upgraded)',
      `base image: added ${ADDED.name} ${ADDED.version}`,
      `base image: upgraded ${old.name} ${old.version} -> ${upgraded.version}`,
    ];
    for (const line of lines) tour.check(`the plan says "${line}"`, plan.includes(line), plan);
    const rolledOut = await rollOut(tour, {
      what: 'every node runs on the new base image',
      mode: 'Layered',
      act: () => tour.apply([stockMachineConfig(image)]),
      missingInConfig: newConfig,
    });
    const { summary } = buildOf(tour, 'worker').status?.contents ?? {};
    tour.check(
      'the build recorded the same of its image',
      summary?.startsWith('2 packages (1 added, 1 upgraded)') === true,
      summary,
    );
    expectActions(tour, rolledOut, 'Reboot');
    expectOneReboot(tour, rolledOut);
    expectOneAtATime(tour, rolledOut);
  },
};

/** @returns the packages of the base image as the builder recorded them. */
async function packagesOf(tour: TourContext): Promise<readonly Package[]> {
  const { baseRecord } = buildOf(tour, 'worker').status ?? {};
  const tree = baseRecord && (await readTreeRecord(tour.registry, baseRecord, tour.signal));
  return tree === undefined ? [] : contentsOf(tree, '').databases.flatMap(({ packages }) => packages);
}

/** @returns the stock image with another list of packages, by digest. */
async function pushBase(
  { record, registry, signal }: TourContext,
  packages: readonly Package[],
): Promise<DigestedPullspec> {
  const base = parseReference(record.stockImage);
  const description = await describeImage(registry, base, '', signal);
  const content = Buffer.from(dpkgStatus(packages));
  const layer = await writeLayer([{ type: 'file', path: STATUS, mode: 0o644, uid: 0, gid: 0, content }]);
  const options = { labels: {}, created: '1970-01-01T00:00:00Z', comment: 'sandbox: other packages' };
  const target = parseReference(`${repositoryOf(record.stockImage)}:2`);
  const { digest } = await pushAppended(registry, { base, description, target, layer, options }, signal);
  return byDigest(target, digest);
}

/** @returns what `shale plan` prints of nodes on another base image. */
async function planOf({ record, signal }: TourContext, image: DigestedPullspec): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-plan-'));
  try {
    const file = path.join(dir, 'new-base.yaml');
    await writeFile(file, JSON.stringify(stockMachineConfig(image)));
    const { stdout } = await execa(process.execPath, [SHALE, 'plan', '-f', file, '--packages'], {
      env: { KUBECONFIG: record.kubeconfig },
      cancelSignal: signal,
    });
    return stdout;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
