import { stringify } from 'yaml';
import type { Digest } from '../../image/digest.ts';
import { COMPANIONS, PROGRAM } from './archive.ts';

/** An archive of the release, for one platform. */
export interface PlatformArchive {
  readonly os: string;
  /** By Go's name, as krew compares it. */
  readonly architecture: string;
  readonly name: string;
  readonly digest: Digest;
}

/**
 * Writes the manifest that `kubectl krew install --manifest` and an index of krew take: `kubectl shale` runs the command
 * line (krew.sigs.k8s.io/docs/developer-guide/plugin-manifest).
 *
 * @param downloads URL of the directory that the archives are in.
 * @returns YAML.
 */
export function krewManifest(
  version: string,
  archives: readonly PlatformArchive[],
  downloads: string,
): string {
  return stringify(
    {
      apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
      kind: 'Plugin',
      metadata: { name: 'shale' },
      spec: {
        version: `v${version}`,
        shortDescription: 'Operating-system images for the nodes of a cluster',
        description:
          'Shows the progress of pools, builds and nodes, predicts what a change of a MachineConfig requires of the nodes, ' +
          'and turns layering on and off: the command line of Shale, which builds the operating system of Kubernetes nodes ' +
          'on the cluster that runs them.\n',
        platforms: archives.map(({ os, architecture, name, digest }) => ({
          selector: { matchLabels: { os, arch: architecture } },
          uri: `${downloads.replace(/\/$/, '')}/${name}`,
          sha256: digest.slice('sha256:'.length),
          files: [PROGRAM, ...COMPANIONS].map((file) => ({ from: file, to: '.' })),
          bin: PROGRAM,
        })),
      },
    },
    { lineWidth: 0 },
  );
}
