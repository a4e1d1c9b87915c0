import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type { MachineConfig } from '../../api/machine-config.ts';
import type { MachineOSConfigSpec } from '../../api/machine-os-config.ts';
import { formatReference, parseReference } from '../../image/reference.ts';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import { containerfileProblem } from './instructions.ts';

/** What only commands can bring into an image. */
export interface EngineSpec {
  /** The user's own, for the architecture; '' where there is none. */
  readonly containerfile: string;
  /** OS extensions, sorted. */
  readonly extensions: readonly string[];
  /**
   * The image that extensions and another kernel are taken from; '' where they come from the configured repositories.
   */
  readonly extensionsImage: string;
  /** default, realtime or 64k-pages. */
  readonly kernelType: string;
  /** Packages to install, sorted. */
  readonly packages: readonly string[];
  /** Values of the Containerfile's ARGs. */
  readonly buildArguments: Readonly<Record<string, string>>;
  /** Secrets that commands may read while they run. */
  readonly buildSecrets: readonly string[];
}

/** Everything that an engine's image depends on. `extensionsImage` is by digest. */
export interface EngineInputs extends EngineSpec {
  /** What commands made for one pool is never another's image. */
  readonly pool: string;
  /** By digest. */
  readonly baseImage: string;
  readonly architecture: string;
  /** Name of the rendered config, where the Containerfile reads its tree; '' where it does not. */
  readonly renderedConfig: string;
  /** Value of the rebuild annotation: who asks for a rebuild wants the commands to run again. */
  readonly rebuild: string;
}

/** As MCO names architectures in a MachineOSConfig, by Go's words. */
const CONTAINERFILE_ARCHITECTURES: Readonly<Record<string, string>> = {
  amd64: 'AMD64',
  arm64: 'ARM64',
  ppc64le: 'PPC64LE',
  s390x: 'S390X',
};

/** A package or an extension is requested by a name that no package can have. */
export class PackageNameError extends Error {}

/** A Containerfile has a line that no engine can read. */
export class ContainerfileError extends Error {}

/** Names that RPM and dpkg have, with a version if need be; nothing that a shell would read as more than a word. */
const PACKAGE = /^[A-Za-z0-9][A-Za-z0-9+._:~=-]*$/;

/**
 * @param architecture in Go's words.
 * @returns what a MachineOSConfig and a rendered config ask for that needs a container engine; undefined for nothing.
 * @throws {PackageNameError} for a name that no package can have.
 * @throws {ContainerfileError} for a Containerfile that no engine can read.
 */
export function engineSpecOf(
  spec: Partial<MachineOSConfigSpec> | undefined,
  rendered: MachineConfig,
  architecture: string,
): EngineSpec | undefined {
  const { containerFile = [], packages = [], buildArguments = [], buildSecrets = [] } = spec ?? {};
  const { extensions, kernelType, baseOSExtensionsContainerImage = '' } = rendered.spec;
  const kernel = kernelType === undefined || kernelType === '' ? 'default' : kernelType;
  const needsExtensions = (extensions ?? []).length > 0 || kernel !== 'default';
  const engineSpec: EngineSpec = {
    containerfile: containerfileFor(containerFile, architecture),
    extensions: named('extensions', extensions ?? []),
    extensionsImage: needsExtensions ? baseOSExtensionsContainerImage : '',
    kernelType: kernel,
    packages: named('packages', packages),
    buildArguments: Object.fromEntries(buildArguments.map(({ name, value }) => [name, value])),
    buildSecrets: buildSecrets.map(({ name }) => name).sort(),
  };
  const isEmpty =
    engineSpec.containerfile.trim() === '' &&
    engineSpec.extensions.length === 0 &&
    engineSpec.packages.length === 0 &&
    engineSpec.kernelType === 'default';
  return isEmpty ? undefined : engineSpec;
}

/** @throws {ContainerfileError} */
function containerfileFor(
  files: NonNullable<MachineOSConfigSpec['containerFile']>,
  architecture: string,
): string {
  const own = files.find(
    ({ containerfileArch }) => containerfileArch === CONTAINERFILE_ARCHITECTURES[architecture],
  );
  const { content = '' } = own ?? files.find(({ containerfileArch }) => containerfileArch === 'NoArch') ?? {};
  const problem = containerfileProblem(content);
  if (problem === undefined) return content;
  const of = own === undefined ? '' : ` of ${own.containerfileArch}`;
  throw new ContainerfileError(`containerFile${of}: ${problem}`);
}

function named(field: string, names: readonly string[]): readonly string[] {
  const wrong = names.find((name) => !PACKAGE.test(name));
  if (wrong === undefined) return [...new Set(names)].sort();
  throw new PackageNameError(
    `${field}: ${JSON.stringify(wrong)} is no package's name; expected letters, digits and + . _ : ~ = -`,
  );
}

/**
 * @param pushSpec where the pool's images go.
 * @returns the tag under which an engine's image of these inputs is kept beside them: equal inputs find it and run
 *   nothing.
 */
export function engineImageName(pushSpec: string, inputs: EngineInputs): string {
  const { registry, repository } = parseReference(pushSpec);
  return formatReference({ registry, repository, tag: `engine-${engineInputsDigest(inputs).slice(0, 32)}` });
}

/** @returns 64 hexadecimal digits: equal for equal inputs. */
export function engineInputsDigest(inputs: EngineInputs): string {
  return createHash('sha256').update(canonicalJson(inputs)).digest('hex');
}

/** Where a context has the files of the rendered config, for Containerfiles that read them. */
export const TREE = 'machineconfig';

/** @returns whether a Containerfile copies from the rendered config's tree; only then an image depends on it. */
export function readsTree(containerfile: string): boolean {
  return containerfile
    .replace(/\\\r?\n/g, ' ')
    .split('\n')
    .filter((line) => /^\s*(COPY|ADD)\s/i.test(line) && !/\s--from=/i.test(line))
    .some((line) =>
      line
        .trim()
        .split(/[\s"[\],]+/)
        .slice(1, -1)
        .some(isInTree),
    );
}

function isInTree(source: string): boolean {
  const normal = posix.normalize(source.replace(/^\/+/, ''));
  return (
    normal === '.' ||
    normal === './' ||
    normal === TREE ||
    normal.startsWith(`${TREE}/`) ||
    /[*?]/.test(source)
  );
}
