import { MachineOSConfigs } from '../../../../api/machine-os-config.ts';
import { expectActions, expectNoReboot } from '../expect-nodes.ts';
import { newConfig, type RolledOut, rollOut, sameConfig } from '../roll-out.ts';
import { StepSkipped, type TourContext, type TourStep } from '../step.ts';

const POOL = 'infra';
const MADE = '/usr/share/inventory/tools';
const CONTAINERFILE = [
  'FROM configs AS final',
  `RUN mkdir -p /usr/share/inventory && echo "tools of the infra nodes" > ${MADE}`,
].join('\n');
const MOTD = '/etc/motd.d/60-infra.motd';

/**
 * What needs commands: a container engine makes an image once, and a change of the config lies on it without another
 * run.
 */
export const commands: TourStep = {
  title:
    'Commands: a container engine runs a Containerfile for pool infra, then a change that needs no engine',
  async run(tour) {
    const { engine } = tour.record;
    if ('missing' in engine) throw new StepSkipped(engine.missing);
    const buildBefore = wantedBuild(tour);
    const built = await rollOut(tour, {
      what: 'the infra node runs the image with its tools',
      mode: 'Layered',
      act: () => setContainerfile(tour),
      missingInConfig: ({ metadata }) =>
        metadata.name === POOL ? missingImage(tour, buildBefore) : undefined,
    });
    tour.check(`${engine.kind} built the image`, wayOfBuild(tour) === 'Engine', wayOfBuild(tour));
    const infra = nodeOf(built);
    const made = await infra.after.running(MADE);
    tour.check(`the infra node booted it: ${MADE} exists`, made?.includes('tools') === true, made);

    const changed = await rollOut(tour, {
      what: 'the infra node has a new message of the day',
      mode: 'Layered',
      act: () => tour.applyExamples('tour/infra-motd.yaml'),
      missingInConfig: (pool, before) =>
        pool.metadata.name === POOL ? newConfig(pool, before) : sameConfig(),
    });
    tour.check(
      'the change was appended: no command was run again',
      wayOfBuild(tour) === 'Append',
      wayOfBuild(tour),
    );
    expectActions(tour, { ...changed, nodes: [nodeOf(changed)] }, 'None');
    expectNoReboot(tour, changed);
    const { after } = nodeOf(changed);
    const [motd, tools] = await Promise.all([after.running(MOTD), after.running(MADE)]);
    tour.check('both files are present', motd !== undefined && tools !== undefined, { motd, tools });
  },
};

async function setContainerfile({ client, secrets: { build }, signal }: TourContext): Promise<void> {
  const content = build === undefined ? CONTAINERFILE : `${CONTAINERFILE}\n${printingSecret(build)}`;
  const spec = {
    containerFile: [{ containerfileArch: 'NoArch', content }],
    ...(build === undefined ? {} : { buildSecrets: [{ name: build }] }),
  };
  await client.patch(MachineOSConfigs, POOL, { type: 'merge', body: { spec } }, { signal });
}

/** A command that has no care for its secret. */
function printingSecret(name: string): string {
  const id = `${name}/token`;
  return `RUN --mount=type=secret,id=${id} echo "the token is $(cat /run/secrets/${id})"`;
}

function wantedBuild({ view }: TourContext): string | undefined {
  return view.machineOSConfigs.get(POOL)?.status?.machineOSBuild?.name;
}

/** The rendered config is the same: only the image shows that the change has arrived. */
function missingImage(tour: TourContext, before: string | undefined): string | undefined {
  const name = wantedBuild(tour);
  if (name === undefined || name === before) return 'no image is requested yet';
  const image = tour.view.builds.get(name)?.status?.digestedImagePushSpec;
  if (image === undefined) return 'building the image';
  const nodes = tour.view.machineConfigNodes.list().filter(({ spec }) => spec.pool.name === POOL);
  const isWanted = nodes.every(({ spec }) => spec.configImage?.desiredImage === image);
  return isWanted ? undefined : 'the node has not been assigned its image yet';
}

function wayOfBuild(tour: TourContext): string | undefined {
  return tour.view.builds.get(wantedBuild(tour) ?? '')?.status?.builder?.imageBuilderType;
}

function nodeOf({ nodes }: RolledOut) {
  const node = nodes.find(({ object }) => object.spec.pool.name === POOL);
  if (node === undefined) throw new Error(`pool ${POOL} has no node`);
  return node;
}
