import {
  extensionPackages,
  isKernelType,
  KERNEL_TYPES,
  osPackages,
} from '../../machineconfig/os-packages.ts';
import type { EngineSpec } from '../../predict/image/engine-spec.ts';
import { BuildFailure } from '../build-failure.ts';

/**
 * The Containerfile that an engine is given. The user's part follows MCO's: the stage to build on is called `configs`,
 * a part that begins with a stage of its own says `FROM configs AS final`, and one without any goes on where the
 * generated part ends (MCO, Containerfile.on-cluster-build-template).
 *
 * Unlike MCO's, `configs` has no file of the MachineConfigs: they are laid on the result as its last layer.
 *
 * @param base name of the base image in the engine.
 * @param extensionsImage name of the image with extensions and other kernels, in the engine; '' for none.
 * @throws BuildFailure for a kernel that no base can be given.
 */
export function effectiveContainerfile(
  base: string,
  engineSpec: EngineSpec,
  extensionsImage: string,
): string {
  const runs = [
    installExtensions(engineSpec, extensionsImage),
    switchKernel(engineSpec.kernelType, extensionsImage),
    installPackages(engineSpec.packages),
  ];
  return [
    ...(extensionsImage === '' ? [] : [`FROM ${extensionsImage} AS extensions`]),
    `FROM ${base} AS configs`,
    ...runs.filter((run) => run !== ''),
    ...(engineSpec.containerfile.trim() === '' ? [] : [engineSpec.containerfile.trimEnd()]),
    '',
  ].join('\n');
}

const REPOSITORY = '/etc/yum.repos.d/coreos-extensions.repo';
const MOUNTED = '/tmp/shale-extensions';

function installExtensions({ extensions }: EngineSpec, image: string): string {
  if (extensions.length === 0) return '';
  const install = `rpm-ostree install ${extensionPackages(extensions).join(' ')}`;
  return byRpmOstree(`extensions (${extensions.join(', ')})`, install, image);
}

/**
 * The extensions image has a package repository, with the other kernels, too (MCO, as above). It is there while the
 * command runs and leaves nothing behind.
 *
 * @param what asks for it, for the message where the base can't.
 */
function byRpmOstree(what: string, command: string, image: string): string {
  const needed = needsRpmOstree(what);
  if (image === '') return `RUN ${needed} && ${command}`;
  const lines = [
    '[coreos-extensions]',
    'name=coreos-extensions',
    'enabled=1',
    `baseurl=file://${MOUNTED}/usr/share/rpm-ostree/extensions/`,
    'gpgcheck=0',
  ];
  const write = `printf '%s\\n' ${lines.map((line) => `'${line}'`).join(' ')} > ${REPOSITORY}`;
  return `RUN --mount=type=bind,from=extensions,source=/,target=${MOUNTED} ${needed} && ${write} && ${command} && rm ${REPOSITORY}`;
}

/** A base image that has the kernel already keeps it. */
function switchKernel(kernelType: string, image: string): string {
  if (!isKernelType(kernelType)) {
    throw new BuildFailure(
      'UnknownKernelType',
      `kernelType ${JSON.stringify(kernelType)} is unknown; expected ${KERNEL_TYPES.join(', ')}`,
    );
  }
  const { installed, removed } = osPackages({ extensions: [], kernelType });
  const [core] = installed;
  if (core === undefined) return '';
  const install = installed.map((name) => `--install ${name}`).join(' ');
  const override = `rpm-ostree override remove ${removed.join(' ')} ${install}`;
  return byRpmOstree(`kernelType ${kernelType}`, `{ rpm -q --quiet ${core} || ${override}; }`, image);
}

function needsRpmOstree(what: string): string {
  return `{ command -v rpm-ostree >/dev/null || { echo "${what} needs rpm-ostree, which the base image does not have" >&2; exit 1; }; }`;
}

/**
 * /var of an ostree base is empty, and apt makes no directory whose parent is missing (apt-pkg,
 * CreateAPTDirectoryIfNeeded).
 */
const APT_DIRECTORIES = '/var/lib/apt/lists/partial /var/cache/apt/archives/partial /var/log/apt';

function installPackages(packages: readonly string[]): string {
  if (packages.length === 0) return '';
  const names = packages.join(' ');
  return [
    `RUN if command -v rpm-ostree >/dev/null; then rpm-ostree install ${names}`,
    `elif command -v dnf >/dev/null; then dnf -y install ${names} && dnf clean all`,
    `elif command -v apt-get >/dev/null; then mkdir -p ${APT_DIRECTORIES} && apt-get update && DEBIAN_FRONTEND=noninteractive apt-get -y install --no-install-recommends ${names} && apt-get clean && rm -rf /var/lib/apt/lists/*`,
    'else echo "packages need rpm-ostree, dnf or apt-get, and the base image has none of them" >&2; exit 1; fi',
  ].join('; ');
}
