import type { ContainerRuntimeConfigSpec } from '../../api/container-runtime-config.ts';
import type { GeneratedFile } from '../generated-config.ts';
import { type Problem, quote } from '../problem.ts';
import { parseQuantity } from './quantities.ts';
import type { RuntimeFlavour } from './runtime-flavour.ts';
import { refused, type ServiceFiles } from './service-file.ts';

type Settings = NonNullable<ContainerRuntimeConfigSpec['containerRuntimeConfig']>;

/** The drop-in that CRI-O reads again on a reload, without a restart (crio.conf(5), log_level). */
export const CRIO_LOG_LEVEL = '/etc/crio/crio.conf.d/98-ctrcfg-log-level.conf';

/** The directory that containerd 2.2 imports by default, and earlier versions where their configuration says so. */
export const CONTAINERD_DROP_INS = '/etc/containerd/conf.d';

const PATH = 'spec.containerRuntimeConfig';
const problem = (field: string, reason: string, expected: string): Problem => ({
  path: `${PATH}.${field}`,
  reason,
  expected,
});

/**
 * The drop-ins of a ContainerRuntimeConfig: one for each field, as in MCO, so that of several objects each field's last
 * one counts. The runtime's own file, and storage.conf, are not touched.
 */
export function runtimeFiles(spec: ContainerRuntimeConfigSpec, flavour: RuntimeFlavour): ServiceFiles {
  const settings = spec.containerRuntimeConfig ?? {};
  const problems = [
    ...runtimeProblems(spec),
    ...(flavour === 'containerd' ? unknownToContainerd(settings) : []),
  ];
  if (problems.length > 0) return refused(problems);
  const files = flavour === 'containerd' ? containerdFiles(settings) : crioFiles(settings);
  return { files, problems: [], warnings: [] };
}

const LEVELS = ['fatal', 'panic', 'error', 'warn', 'info', 'debug', 'trace'];
/** conmon's read buffer: a log that is shorter would be rotated within a read (MCO). */
const LEAST_LOG_SIZE = 8192;
const LEAST_PIDS = 20;

/** @returns what is wrong with an object, whatever runtime its pools have. */
export function runtimeProblems({
  containerRuntimeConfig: settings = {},
}: ContainerRuntimeConfigSpec): Problem[] {
  const { logLevel = '', pidsLimit = 0, logSizeMax = -1 } = settings;
  const bytes = bytesOf(logSizeMax);
  return [
    ...(logLevel === '' || LEVELS.includes(logLevel)
      ? []
      : [problem('logLevel', `is ${quote(logLevel)}`, `one of ${LEVELS.join(', ')}`)]),
    ...(pidsLimit === 0 || pidsLimit >= LEAST_PIDS
      ? []
      : [problem('pidsLimit', `is ${pidsLimit}`, `at least ${LEAST_PIDS}, or 0 for the host's own limit`)]),
    ...(bytes === undefined || (bytes > 0 && bytes <= LEAST_LOG_SIZE)
      ? [
          problem(
            'logSizeMax',
            `is ${quote(String(logSizeMax))}`,
            `more than ${LEAST_LOG_SIZE} bytes, or a negative quantity for no limit`,
          ),
        ]
      : []),
    ...notSupported(settings),
    ...gomaxprocsProblems(settings),
  ];
}

const MOST_BYTES = 2n ** 63n - 1n;

/** @returns a quantity as Go has it (Quantity.Value): rounded up, and as large as 64 bits allow. */
function bytesOf(quantity: string | number): bigint | undefined {
  const value = parseQuantity(quantity);
  if (value === undefined) return undefined;
  const bytes = Number.isFinite(value) ? BigInt(Math.ceil(value)) : MOST_BYTES;
  return bytes > MOST_BYTES ? MOST_BYTES : bytes < -MOST_BYTES ? -MOST_BYTES : bytes;
}

/** Fields of storage.conf, which is the host's and has no drop-ins that every version reads. */
const OF_STORAGE = [
  'overlaySize',
  'additionalArtifactStores',
  'additionalImageStores',
  'additionalLayerStores',
] as const satisfies readonly (keyof Settings)[];

function notSupported(settings: Settings): Problem[] {
  return OF_STORAGE.filter((field) => settings[field] !== undefined).map((field) =>
    problem(
      field,
      "is not supported: it belongs in a file of the host, which Shale doesn't rewrite",
      'a MachineConfig with the whole /etc/containers/storage.conf',
    ),
  );
}

function gomaxprocsProblems({ containerGomaxprocsBehavior }: Settings): Problem[] {
  if (containerGomaxprocsBehavior !== 'Autosize') return [];
  const reason = 'is not supported: not every version of CRI-O sets GOMAXPROCS in containers';
  return [
    problem('containerGomaxprocsBehavior', reason, 'Disabled, and GOMAXPROCS in the pods that need it'),
  ];
}

const insteadOf = {
  pidsLimit: 'podPidsLimit in a KubeletConfig',
  logSizeMax: 'containerLogMaxSize in a KubeletConfig',
  defaultRuntime: "a RuntimeClass, or default_runtime_name in a MachineConfig with containerd's own file",
} as const satisfies Partial<Record<keyof Settings, string>>;

function unknownToContainerd(settings: Settings): Problem[] {
  return (Object.keys(insteadOf) as (keyof typeof insteadOf)[])
    .filter((field) => settings[field] !== undefined && settings[field] !== 0)
    .map((field) =>
      problem(field, 'is a setting of CRI-O, and these nodes run containerd', insteadOf[field]),
    );
}

function crioFiles({ logLevel = '', pidsLimit = 0, logSizeMax, defaultRuntime }: Settings): GeneratedFile[] {
  const bytes = logSizeMax === undefined ? 0n : (bytesOf(logSizeMax) ?? 0n);
  const dropIn = (name: string, key: string, value: string | number | bigint): GeneratedFile => ({
    path: name === 'log-level' ? CRIO_LOG_LEVEL : `/etc/crio/crio.conf.d/98-ctrcfg-${name}.conf`,
    text: `[crio.runtime]\n${key} = ${typeof value === 'string' ? JSON.stringify(value) : value}\n`,
  });
  return [
    ...(defaultRuntime === undefined ? [] : [dropIn('default-runtime', 'default_runtime', defaultRuntime)]),
    ...(logLevel === '' ? [] : [dropIn('log-level', 'log_level', logLevel)]),
    ...(bytes === 0n ? [] : [dropIn('log-size-max', 'log_size_max', bytes)]),
    ...(pidsLimit === 0 ? [] : [dropIn('pids-limit', 'pids_limit', pidsLimit)]),
  ];
}

/**
 * containerd takes the version of the last file that it imports for that of all of them. A file of version 2 leaves the
 * sections of a version 3 file as they are; the other way round, sections of a version 2 file would have no effect.
 */
function containerdFiles({ logLevel = '' }: Settings): GeneratedFile[] {
  if (logLevel === '') return [];
  return [
    {
      path: `${CONTAINERD_DROP_INS}/98-ctrcfg-log-level.toml`,
      text: `version = 2\n\n[debug]\nlevel = ${JSON.stringify(logLevel)}\n`,
    },
  ];
}
