import { errorMessage } from '../api/error-message.ts';
import { parseDigestedPullspec } from '../api/references.ts';
import { sameList } from './diff.ts';
import { bootEntryFault } from './kernel-arguments.ts';
import type { NodeConfig } from './node-config.ts';
import { osPackages, samePackages } from './os-packages.ts';
import { placeInImage } from './place-in-image.ts';

/** The properties of a host that determine which configs it can apply in standard mode. */
export interface HostSystem {
  /** The backend of its operating system. */
  readonly osBackend: {
    readonly name: 'bootc' | 'rpm-ostree' | 'ostree';
    readonly version?: string;
    /** Whether it can install packages on top of an image. Absent when it has not reported it. */
    readonly installsPackages?: boolean;
    /** Whether it can set kernel arguments beyond an image's own. Absent where it can. */
    readonly setsKernelArguments?: boolean;
  };
  /** GOARCH; absent when unknown. */
  readonly architecture?: string | undefined;
  /** The image of its operating system; absent when unknown. */
  readonly baseImage?: string | undefined;
}

export interface StandardModeChange {
  /** What the host runs now. */
  readonly from: Pick<NodeConfig, 'extensions' | 'kernelType' | 'kernelArguments'>;
  readonly to: Pick<
    NodeConfig,
    'extensions' | 'kernelType' | 'kernelArguments' | 'osImageURL' | 'files' | 'directories' | 'links'
  >;
  /** The image with the packages, as the rendered config names it; '' for none. */
  readonly extensionsImage: string;
}

/**
 * Why a host can't apply a config without layering. The daemon refuses the config by this rule, and `shale plan`
 * predicts it. A layered image has none of these limits.
 *
 * @returns the reasons as text; empty when it can.
 */
export function refusedInStandardMode({ from, to, extensionsImage }: StandardModeChange, host: HostSystem) {
  const { name, installsPackages = name !== 'ostree', setsKernelArguments = true } = host.osBackend;
  const packages = askedPackages(to);
  const needsDeployment =
    packages !== '' ||
    !samePackages(osPackages(from), osPackages(to)) ||
    !sameList(from.kernelArguments, to.kernelArguments);
  return [
    ...underUsr(to).map((path) => `${path}: ${USR_IS_THE_IMAGES}`),
    ...brokenBootEntry(from, to),
    ...(packages === '' || installsPackages ? [] : [`${packages}: ${name} ${INSTALLS_NONE}`]),
    ...(to.kernelArguments.length === 0 || setsKernelArguments
      ? []
      : [`kernelArguments ${to.kernelArguments.join(' ')}: ${name} ${SETS_NO_ARGUMENTS}`]),
    ...wrongArchitecture(to.kernelType, host.architecture),
    ...notByDigest('osImageURL', to.osImageURL),
    ...(packages === '' ? [] : notByDigest('baseOSExtensionsContainerImage', extensionsImage)),
    ...(needsDeployment && to.osImageURL === '' && host.baseImage === undefined ? [NO_IMAGE] : []),
  ];
}

/** A config from before this was validated; a host that runs with its arguments may go on. */
function brokenBootEntry(from: StandardModeChange['from'], to: StandardModeChange['to']): string[] {
  if (sameList(from.kernelArguments, to.kernelArguments)) return [];
  const fault = bootEntryFault(to.kernelArguments.join(' '));
  return fault === undefined ? [] : [`kernelArguments: ${fault.reason}; expected ${fault.expected}`];
}

/** @returns which hosts can apply a config without layering, as text; empty when every host can. */
export function limitedInStandardMode(
  to: StandardModeChange['to'],
  extensionsImage: string,
): readonly string[] {
  const packages = askedPackages(to);
  return [
    ...underUsr(to).map((path) => `${path}: on no host without layering`),
    ...(packages === ''
      ? []
      : [`${packages}: without layering on hosts with rpm-ostree alone, not where ostree or bootc is alone`]),
    ...(to.kernelType === '64k-pages' ? ['kernelType 64k-pages: on hosts of arm64 alone'] : []),
    ...notByDigest('osImageURL, without layering', to.osImageURL),
    ...(packages === ''
      ? []
      : notByDigest('baseOSExtensionsContainerImage, without layering', extensionsImage)),
  ];
}

/** The suffix of a message after the name of a tool that can't install packages. */
export const INSTALLS_NONE =
  "keeps the host's operating system and installs no packages; expected on-cluster layering, or a host with rpm-ostree";

/** The suffix of a message after the name of a tool that sets no kernel arguments but those of an image's kargs.d. */
export const SETS_NO_ARGUMENTS =
  "can't set kernel arguments beyond those of the image on this host; expected on-cluster layering";

const USR_IS_THE_IMAGES =
  '/usr belongs to the image, and what a running host writes there is gone after a reboot; expected on-cluster layering, or a path outside of /usr';

const NO_IMAGE =
  'kernel arguments and packages need a new deployment, and it is not known of which image the host is; expected osImageURL by digest';

/** @returns the parts of a config that need packages besides the image, as text; '' without any. */
export function askedPackages({
  extensions,
  kernelType,
}: Pick<NodeConfig, 'extensions' | 'kernelType'>): string {
  return [
    ...(extensions.length === 0 ? [] : [`extensions ${extensions.join(', ')}`]),
    ...(kernelType === 'default' ? [] : [`kernelType ${kernelType}`]),
  ].join(' and ');
}

/** @returns paths that only an image can bring: hosts mount /usr read-only, and each boot has it as the image does. */
function underUsr({ files, directories, links }: StandardModeChange['to']): readonly string[] {
  return [...files.keys(), ...directories.keys(), ...links.keys()].filter((path) => {
    const place = placeInImage(path);
    return place.kind === 'image' && place.path.startsWith('/usr/');
  });
}

function wrongArchitecture(kernelType: NodeConfig['kernelType'], architecture: string | undefined): string[] {
  return kernelType !== '64k-pages' || architecture === undefined || architecture === 'arm64'
    ? []
    : [`kernelType 64k-pages is for arm64 alone, and this host is ${architecture}`];
}

function notByDigest(field: string, image: string): string[] {
  if (image === '') return [];
  try {
    parseDigestedPullspec(image);
    return [];
  } catch (error) {
    return [`${field}: ${errorMessage(error)}`];
  }
}
