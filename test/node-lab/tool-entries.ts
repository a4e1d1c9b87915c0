import type { LayerEntry } from '../../image/layer/entry.ts';
import { text } from './lab-updates.ts';

/**
 * How ostree sets up the root: with composefs, and /sysroot read-only, as base images of bootc and rpm-ostree have it.
 */
export const PREPARE_ROOT = '[composefs]\nenabled = yes\n[sysroot]\nreadonly = true\n';
export const PREPARE_ROOT_FILE = '/usr/lib/ostree/prepare-root.conf';

/** @returns how programs that read containers-registries.conf(5) pull from a registry without TLS. */
export function registryWithoutTls(registry: string): LayerEntry {
  const entry = `[[registry]]\nlocation = "${registry}"\ninsecure = true\n`;
  return text('/etc/containers/registries.conf.d/50-lab.conf', entry);
}

/** @returns what an image needs to be booted by a tool that makes images of ostree, and to be pulled by it. */
export function toolEntries(registry: string): LayerEntry[] {
  return [text(PREPARE_ROOT_FILE, PREPARE_ROOT), registryWithoutTls(registry)];
}
