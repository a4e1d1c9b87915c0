import { createHash } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Pod, Secret } from '../../../api/kubernetes.ts';

interface Volume {
  readonly name: string;
  readonly emptyDir?: object;
  readonly secret?: { readonly secretName: string; readonly defaultMode?: number };
}

/** The directories of a pod's volumes. */
export interface PodVolumes {
  readonly directories: ReadonlyMap<string, string>;
  remove(): Promise<void>;
}

/**
 * Creates what a kubelet mounts: emptyDirs, and Secrets as files, for the pod's group (fsGroup).
 *
 * @param secretOf reads a Secret of the pod's namespace.
 * @returns undefined while a Secret does not exist yet: the kubelet waits for it, too.
 */
export async function createVolumes(
  pod: Pod,
  secretOf: (name: string) => Promise<Secret | undefined>,
): Promise<PodVolumes | undefined> {
  const { fsGroup = 0 } = (pod.spec.securityContext ?? {}) as { readonly fsGroup?: number };
  const volumes = (pod.spec.volumes ?? []) as readonly Volume[];
  const secrets = new Map<string, Secret>();
  for (const { name, secret } of volumes) {
    if (secret === undefined) continue;
    const found = await secretOf(secret.secretName);
    if (found === undefined) return undefined;
    secrets.set(name, found);
  }
  // The path of a Unix socket has at most 107 bytes (unix(7)); the sandbox may lie deeper than that.
  const root = await mkdtemp(path.join(tmpdir(), 'shale-pod-'));
  await chmod(root, 0o711);
  const directories = new Map<string, string>();
  for (const { name, emptyDir, secret } of volumes) {
    if (emptyDir === undefined && secret === undefined) continue;
    const directory = path.join(root, name);
    directories.set(name, directory);
    await mkdir(directory);
    for (const [key, value] of Object.entries(secrets.get(name)?.data ?? {})) {
      const file = path.join(directory, key);
      await writeFile(file, Buffer.from(value, 'base64'));
      await chmod(file, secret?.defaultMode ?? 0o644);
      await chown(file, 0, fsGroup);
    }
    await chown(directory, 0, fsGroup);
    await chmod(directory, secret === undefined ? 0o2777 : 0o2750);
  }
  return { directories, remove: () => rm(root, { recursive: true, force: true, maxRetries: 20 }) };
}

/** @returns arguments whose paths in volumes are those of the volumes' directories. */
export function argumentsInVolumes(
  args: readonly string[],
  mounts: readonly { readonly name: string; readonly mountPath: string }[],
  directories: ReadonlyMap<string, string>,
): readonly string[] {
  return args.map((arg) => {
    const mount = mounts.find(({ mountPath }) => arg === mountPath || arg.startsWith(`${mountPath}/`));
    const directory = directories.get(mount?.name ?? '');
    return mount === undefined || directory === undefined
      ? arg
      : directory + arg.slice(mount.mountPath.length);
  });
}

/**
 * The address of a pod, so that pods may listen on the same port: one of loopback's 127.64.0.0/10, of several sandboxes
 * on one machine another for each pod.
 */
export function podAddress({ metadata }: Pod): string {
  const [a = 0, b = 0, c = 0] = createHash('sha256')
    .update(metadata.uid ?? metadata.name)
    .digest();
  return `127.${64 + (a & 63)}.${b}.${1 + (c % 254)}`;
}
