import type { DisruptionAction } from '../../api/disruption-action.ts';
import { type MachineConfig, MachineConfigs } from '../../api/machine-config.ts';
import type { Grant } from '../../api/machine-config-node.ts';
import { imageLabels } from '../../api/names.ts';
import { present } from '../../api/present.ts';
import type { DigestedPullspec } from '../../api/references.ts';
import { encodeTransitionLabel } from '../../disruption/transitions.ts';
import type { LayerEntry } from '../../image/layer/entry.ts';
import type { RegistryClient } from '../../image/registry/registry-client.ts';
import type { ImageContent } from '../../workshop/sandbox/registry.ts';
import { HOLDER, type NodeControlPlane } from '../fixtures/node-control-plane.ts';

/** What the tests' images are for: a service, and the config that it reads. */
export const CONFIG = '/etc/lab.conf';
export const SERVICE = 'lab.service';
/** The policies in force, by their digest. */
export const POLICY = `sha256:${'a'.repeat(64)}`;

/** @returns a file of a layer, of root's. */
export const text = (path: string, content: string, mode = 0o644): LayerEntry => ({
  type: 'file',
  path,
  mode,
  uid: 0,
  gid: 0,
  content: Buffer.from(content),
});

/** @returns a link of a layer. */
export const link = (path: string, target: string): LayerEntry => ({
  type: 'symlink',
  path,
  target,
  uid: 0,
  gid: 0,
});

/** @returns a unit that is started at boot. */
export const enabledUnit = (name: string, content: string, wantedBy = 'multi-user.target'): LayerEntry[] => [
  text(`/usr/lib/systemd/system/${name}`, content),
  link(`/etc/systemd/system/${wantedBy}.wants/${name}`, `/usr/lib/systemd/system/${name}`),
];

/** A service that prints its config when it starts. */
export const LAB_SERVICE: readonly LayerEntry[] = enabledUnit(
  SERVICE,
  `[Service]\nExecStart=/bin/sh -c 'cat ${CONFIG}; exec sleep infinity'\n`,
);

/** What a change of the config takes on a machine that runs. */
export const RESTART: DisruptionAction = { type: 'Restart', service: SERVICE };

/** @returns the file by which an image has a kernel argument; of two the later counts. */
export const kernelArgument = (argument: string): LayerEntry =>
  text('/usr/lib/bootc/kargs.d/50-lab.toml', `kargs = ["${argument}"]\n`);

export const FAILING_CHECK = text('/etc/shale/health.d/10-net', '#!/bin/sh\necho no route\nexit 1\n', 0o755);
/** What the daemon reports of it. */
export const FAILED_CHECK = 'health check /etc/shale/health.d/10-net failed (exit code 1): no route';

/** A machine to be updated, and the registry and control plane that it looks at. */
export interface UpdatedMachine extends Pick<NodeControlPlane, 'client' | 'want'> {
  readonly stock: DigestedPullspec;
  /** Reaches its registry by the name that the machine has for it. */
  readonly registry: RegistryClient;
  /** Pushes an image of the machine's stock image and one layer. */
  push(content: Pick<ImageContent, 'entries' | 'labels'>): Promise<DigestedPullspec>;
}

/** What the builder and the operator do to bring a machine to a config. */
export interface Updates {
  /**
   * Pushes an image as the builder makes it.
   *
   * @param from the config that it may be applied live to. @param more files beside the service's config.
   */
  build(
    config: string,
    from?: { readonly config: string; readonly actions: DisruptionAction[] },
    more?: readonly LayerEntry[],
  ): Promise<DigestedPullspec>;
  /** Names the target without a grant, as the operator does. */
  assign(config: string, image: DigestedPullspec): Promise<void>;
  /** Names the target and grants it, as the operator does. @param softReboot whether the pool allows it. */
  want(
    config: string,
    image: DigestedPullspec,
    level: Grant['level'],
    softReboot?: 'softReboot',
  ): Promise<void>;
  /** Makes a rendered config whose one file is the service's config. */
  render(config: string, content: string, kernelArguments?: string[]): Promise<MachineConfig>;
  /** Names a rendered config and no layered image: layering is off. */
  wantStandard(config: string, osImage?: string): Promise<void>;
}

/** @param stock what the machine's stock image has above Debian. */
export function updatesOf(machine: UpdatedMachine, stock: readonly LayerEntry[]): Updates {
  const targetOf = (config: string, image: DigestedPullspec) => ({
    configVersion: { desired: config },
    configImage: { desiredImage: image },
    imageSigningKeys: 'Disabled' as const,
    policyDigest: POLICY,
  });
  return {
    assign: (config, image) => machine.want(targetOf(config, image)),
    build: (config, from, more = []) => {
      const transitions = from === undefined ? [] : [{ ...from, base: machine.stock, causes: [] }];
      return machine.push({
        entries: [...stock, text(CONFIG, `${config}\n`), ...more],
        labels: {
          [imageLabels.renderedConfig]: config,
          [imageLabels.baseImage]: machine.stock,
          [imageLabels.disruption]: encodeTransitionLabel({ version: 1, policyDigest: POLICY, transitions }),
        },
      });
    },
    want: (config, image, level, softReboot) =>
      machine.want({
        ...targetOf(config, image),
        ...(softReboot === undefined ? {} : { softReboot: true }),
        grant: { level, config, image, leaseHolder: HOLDER },
      }),
    render: (config, content, kernelArguments = []) => {
      const source = `data:,${encodeURIComponent(content)}`;
      const files = [{ path: CONFIG, mode: 0o644, overwrite: true, contents: { source } }];
      return machine.client.create(MachineConfigs, {
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'MachineConfig',
        metadata: { name: config },
        spec: { config: { ignition: { version: '3.4.0' }, storage: { files } }, kernelArguments },
      });
    },
    wantStandard: (config, osImage) =>
      machine.want({
        configVersion: { desired: config },
        ...present({ osImage }),
        policyDigest: POLICY,
        grant: { level: 'Disrupt', config, leaseHolder: HOLDER },
      }),
  };
}
