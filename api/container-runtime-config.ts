import { z } from 'zod';
import { machineConfigPoolSelector, type ServiceConfigStatus } from './kubelet-config.ts';
import { clusterKind, type KubernetesObject, MCO_V1 } from './object.ts';

const quantity = z.union([z.int(), z.string()]).meta({ 'x-kubernetes-int-or-string': true }).exactOptional();

/** As in openshift/api, StorePath: absolute, of few characters, without empty parts. */
const STORE_PATH = /^\/[a-zA-Z0-9._-]+(\/[a-zA-Z0-9._-]+)*\/?$/;

const stores = (name: string, most: number) =>
  z
    .array(
      z.object({
        path: z
          .string()
          .min(1)
          .max(256)
          .regex(STORE_PATH, { error: 'an absolute path without empty elements' })
          .describe('Absolute path of the store.'),
      }),
    )
    .min(1)
    .max(most)
    .meta({
      'x-kubernetes-validations': [
        {
          rule: 'self.all(x, self.exists_one(y, x.path == y.path))',
          message: `${name} must not contain duplicate paths`,
        },
      ],
    })
    .exactOptional();

export const ContainerRuntimeConfigSpec = z.object({
  machineConfigPoolSelector,
  containerRuntimeConfig: z
    .object({
      logLevel: z
        .string()
        .exactOptional()
        .describe("Verbosity of the runtime's logs: fatal, panic, error, warn, info, debug or trace."),
      pidsLimit: z
        .int()
        .exactOptional()
        .describe('CRI-O: maximum number of processes in a container, at least 20. 0 leaves it to the host.'),
      logSizeMax: quantity.describe(
        "CRI-O: maximum size of a container's log file, more than 8192 bytes. A negative value sets no limit.",
      ),
      defaultRuntime: z
        .enum(['crun', 'runc'])
        .exactOptional()
        .describe('CRI-O: the OCI runtime of containers that name none.'),
      overlaySize: quantity.describe(
        'Not supported: it is a setting of /etc/containers/storage.conf, a file of the host.',
      ),
      additionalArtifactStores: stores('additionalArtifactStores', 10).describe('Not supported.'),
      additionalImageStores: stores('additionalImageStores', 10).describe(
        'Not supported: a setting of /etc/containers/storage.conf.',
      ),
      additionalLayerStores: stores('additionalLayerStores', 5).describe(
        'Not supported: a setting of /etc/containers/storage.conf.',
      ),
      containerGomaxprocsBehavior: z
        .enum(['Autosize', 'Disabled'])
        .exactOptional()
        .describe('Only Disabled is supported: not every version of CRI-O sets GOMAXPROCS.'),
    })
    .exactOptional()
    .describe('Settings of the container runtime.'),
});
export type ContainerRuntimeConfigSpec = z.infer<typeof ContainerRuntimeConfigSpec>;

/** Settings of the container runtimes of some pools. */
export interface ContainerRuntimeConfig extends KubernetesObject {
  readonly spec: ContainerRuntimeConfigSpec;
  readonly status?: ServiceConfigStatus;
}

export const ContainerRuntimeConfigs = clusterKind<ContainerRuntimeConfig>(MCO_V1, 'ContainerRuntimeConfig');
