import { type Command, InvalidArgumentError } from 'commander';
import { errorMessage } from '../api/error-message.ts';
import { SIGNING_KEY_SECRET } from '../api/names.ts';
import { ENGINE_POD, type EnginePodFlags, withEnginePodFlags } from '../builder/engine/engine-flags.ts';
import { wholeNumber } from '../cluster/process.ts';
import { type BuilderPodSettings, parseBuilderPod } from '../opt-in/builder-pod.ts';
import type { Signing } from '../opt-in/switch.ts';

interface EngineFlags extends EnginePodFlags {
  readonly engine: string;
}

/** Flags of the operator about the builder that it starts. */
export interface BuilderFlags extends EngineFlags {
  readonly insecureRegistry: string[];
  readonly attest: boolean;
  readonly signingKeySecret: string;
  readonly engineTlsDir?: string;
  readonly builderMetricsPort: number;
  readonly builderPod?: BuilderPodSettings;
}

/** Value of `--engine` by which such images are refused. */
const NO_ENGINE = 'none';

/** @returns the command with these flags. */
export function withBuilderFlags(command: Command): Command {
  return withEngineFlags(
    command
      .option('--insecure-registry <host...>', 'registries (host:port) to contact over plain HTTP', [])
      .option('--no-attest', 'attach no provenance and no file list to images')
      .option(
        '--signing-key-secret <name>',
        'Secret with the key cosign.key that signs images; the operator creates the default one',
        SIGNING_KEY_SECRET,
      )
      .option(
        '--builder-pod <json>',
        "settings of the builder's pod: resources, nodeSelector, tolerations, affinity, podAnnotations, podLabels",
        builderPod,
      )
      .option(
        '--builder-metrics-port <port>',
        "port of the builder's pod for /metrics, /healthz and /readyz; 0 disables it",
        wholeNumber(0, 65_535),
        0,
      ),
  );
}

function withEngineFlags(command: Command): Command {
  const withEngine = command
    .option(
      '--engine <what>',
      'container engine for images that need commands to run: pod (Podman in a pod of its own for each image), none (such images are refused), or the address of an engine',
      engineChoice,
      ENGINE_POD,
    )
    .option(
      '--engine-tls-dir <dir>',
      "directory in the builder's pod with ca.pem, cert.pem and key.pem for an engine on TCP",
    );
  return withEnginePodFlags(withEngine);
}

/**
 * @param image Shale's, which engines in pods need, too.
 * @returns the builder's arguments: what the operator's flags say about images is for the builder to do.
 */
export function builderArguments(flags: BuilderFlags, signing: Signing, image: string): readonly string[] {
  const { insecureRegistry, attest, signingKeySecret, engineTlsDir, builderMetricsPort } = flags;
  return [
    ...(insecureRegistry.length === 0 ? [] : ['--insecure-registry', ...insecureRegistry]),
    ...(attest ? [] : ['--no-attest']),
    ...(signing === 'required' ? ['--signing-key-secret', signingKeySecret] : []),
    ...engineArguments(flags, image),
    ...(builderMetricsPort === 0 ? [] : ['--metrics-port', String(builderMetricsPort)]),
    ...(engineTlsDir === undefined ? [] : ['--engine-tls-dir', engineTlsDir]),
  ];
}

function engineArguments(
  { engine, engineImage, engineDisk, engineMemory, engineMemoryLimit, engineHostUsers }: EngineFlags,
  image: string,
): readonly string[] {
  if (engine === NO_ENGINE) return [];
  if (engine !== ENGINE_POD) return ['--engine', engine];
  return [
    ...['--engine', ENGINE_POD, '--engine-image', engineImage, '--shale-image', image],
    ...['--engine-disk', engineDisk, '--engine-memory', engineMemory],
    ...['--engine-memory-limit', engineMemoryLimit],
    ...(engineHostUsers ? ['--engine-host-users'] : []),
  ];
}

/** @throws InvalidArgumentError that says what would be right. */
function engineChoice(value: string): string {
  if (value === ENGINE_POD || value === NO_ENGINE || /^(unix|tcp):\/\/./.test(value)) return value;
  throw new InvalidArgumentError('Expected pod, none, unix:///path or tcp://host:port');
}

/** @throws InvalidArgumentError that names the field. */
function builderPod(value: string): BuilderPodSettings {
  try {
    return parseBuilderPod(value);
  } catch (error) {
    throw new InvalidArgumentError(errorMessage(error));
  }
}
