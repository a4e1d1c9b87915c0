import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { parseAuthFile } from '../../image/registry/credentials.ts';
import { createRegistryClient } from '../../image/registry/registry-client.ts';
import { registriesMachineConfig } from '../../machineconfig/registries/machine-config.ts';
import { DIE_WITH_PARENT } from '../../workshop/apiserver/control-plane/child-process.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import type { SandboxRegistry } from '../../workshop/sandbox/registry.ts';
import { createAuthority } from '../../x509/certificate.ts';

export const USER = 'builder';
export const PASSWORD = 'secret';
/** bcrypt of the password. */
const HTPASSWD = `${USER}:$2b$05$wjAuzKAVhfFmsHSfAUFXzOyG123GMaVGlqlbJab4QQH5yuwLvWlZq\n`;

/** A registry with a certificate authority of its own that lets nobody in without a password. */
export interface LockedRegistry extends SandboxRegistry {
  /** A pull secret for it. */
  readonly authFile: string;
}

/**
 * @param dir where it keeps what it has; created if it doesn't exist. @param address that it listens on; loopback
 * unless given.
 */
export async function startLockedRegistry(dir: string, address = '127.0.0.1'): Promise<LockedRegistry> {
  await mkdir(dir, { recursive: true });
  const authority = createAuthority('shale-lab-registry', new Date());
  const { certPem, keyPem } = authority.issueServer({ dns: [], ipv4: [address] });
  const file = (name: string) => path.join(dir, name);
  await writeFile(file('tls.crt'), certPem);
  await writeFile(file('tls.key'), keyPem, { mode: 0o600 });
  await writeFile(file('htpasswd'), HTPASSWD);
  const { host, stop } = await startDockerRegistry({
    dir,
    address,
    htpasswd: file('htpasswd'),
    launcher: DIE_WITH_PARENT,
    tls: { certificate: file('tls.crt'), key: file('tls.key') },
  });
  const { caPem } = authority;
  const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
  const authFile = JSON.stringify({ auths: { [host]: { auth } } });
  const client = createRegistryClient({ caFor: () => caPem, auths: parseAuthFile(authFile) });
  return { host, caPem, authFile, client, stop };
}

/** @returns the registries.conf that a cluster's nodes get for an ImageDigestMirrorSet. */
export function mirrorConfiguration(source: string, mirror: string): string {
  const made = registriesMachineConfig('worker', {
    icsp: [],
    idms: [
      {
        apiVersion: 'config.openshift.io/v1',
        kind: 'ImageDigestMirrorSet',
        metadata: { name: 'lab' },
        spec: {
          imageDigestMirrors: [{ source, mirrors: [mirror], mirrorSourcePolicy: 'NeverContactSource' }],
        },
      },
    ],
    itms: [],
    controllerVersion: 'lab',
  });
  if (!made.ok) throw new TypeError(JSON.stringify(made.problems));
  const encoded = /;base64,(?<bytes>[^"]+)"/.exec(JSON.stringify(made.machineConfig))?.groups?.['bytes'];
  if (encoded === undefined) throw new TypeError('expected a registries.conf');
  return Buffer.from(encoded, 'base64').toString('utf8');
}
