import { parseDigestedPullspec } from '../api/references.ts';
import { sameList } from './diff.ts';
import type { NodeConfig } from './node-config.ts';
import { osPackages, samePackages } from './os-packages.ts';

/** What a host is, as far as it decides which configs standard mode can bring it to. */
export interface HostSystem {
  /** What keeps its operating system. */
  readonly osBackend: {
    readonly name: 'bootc' | 'rpm-ostree' | 'ostree';
    readonly version?: string;
    /** Whether it puts packages on top of an image. Absent where it has not said. */
    readonly installsPackages?: boolean;
  };
  /** In Go's words; absent where it is not known. */
  readonly architecture?: string;
  /** The image that its operating system is of; absent where none is known. */
  readonly baseImage?: string;
}

export interface StandardModeChange {
  /** What the host has now. */
  readonly from: Pick<NodeConfig, 'extensions' | 'kernelType' | 'kernelArguments'>;
  readonly to: Pick<NodeConfig, 'extensions' | 'kernelType' | 'kernelArguments' | 'osImageURL'>;
  /** The image with the packages, as the rendered config names it; '' for none. */
  readonly extensionsImage: string;
}

/**
 * Why a host can't be brought to a config without layering: the daemon refuses it by this rule, and whoever plans a change
 * says it before. An image made on the cluster is under none of these limits.
 *
 * @returns the reasons in words, none where it can.
 */
export function refusedInStandardMode({ from, to, extensionsImage }: StandardModeChange, host: HostSystem) {
  const { name, installsPackages = name !== 'ostree' } = host.osBackend;
  const packages = askedPackages(to);
  const needsDeployment =
    packages !== '' ||
    !samePackages(osPackages(from), osPackages(to)) ||
    !sameList(from.kernelArguments, to.kernelArguments);
  return [
    ...(packages === '' || installsPackages ? [] : [`${packages}: ${name} ${INSTALLS_NONE}`]),
    ...wrongArchitecture(to.kernelType, host.architecture),
    ...notByDigest('osImageURL', to.osImageURL),
    ...(packages === '' ? [] : notByDigest('baseOSExtensionsContainerImage', extensionsImage)),
    ...(needsDeployment && to.osImageURL === '' && host.baseImage === undefined ? [NO_IMAGE] : []),
  ];
}

/** @returns on which hosts alone a config can be had without layering, in words, where that is not on every one. */
export function limitedInStandardMode(
  to: StandardModeChange['to'],
  extensionsImage: string,
): readonly string[] {
  const packages = askedPackages(to);
  return [
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

/** What follows the name of a tool that is asked for packages. */
export const INSTALLS_NONE =
  "keeps the host's operating system and installs no packages; expected on-cluster layering, or a host with rpm-ostree";

const NO_IMAGE =
  'kernel arguments and packages need a new deployment, and it is not known of which image the host is; expected osImageURL by digest';

/** @returns what of a config needs packages beside the image, in words; '' for nothing. */
export function askedPackages({
  extensions,
  kernelType,
}: Pick<NodeConfig, 'extensions' | 'kernelType'>): string {
  return [
    ...(extensions.length === 0 ? [] : [`extensions ${extensions.join(', ')}`]),
    ...(kernelType === 'default' ? [] : [`kernelType ${kernelType}`]),
  ].join(' and ');
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
    return [`${field}: ${error instanceof Error ? error.message : String(error)}`];
  }
}
