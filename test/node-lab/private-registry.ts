import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { DigestedPullspec } from '../../api/references.ts';
import { parseAuthFile } from '../../image/registry/credentials.ts';
import { createRegistryClient, type RegistryClient } from '../../image/registry/registry-client.ts';
import { registriesMachineConfig } from '../../machineconfig/registries/machine-config.ts';
import { DIE_WITH_PARENT } from '../../workshop/apiserver/control-plane/child-process.ts';
import { startDockerRegistry } from '../../workshop/sandbox/docker-registry.ts';
import { stockImage } from '../../workshop/sandbox/node/stock-image.ts';
import { pushImage } from '../../workshop/sandbox/registry.ts';
import { createAuthority } from '../../x509/certificate.ts';
import { deadline } from '../fixtures/patience.ts';
import { PREPARE_ROOT } from './bootc/install-bootc.ts';
import { text } from './lab-updates.ts';

const PUSH_MS = 60_000;
export const USER = 'builder';
export const PASSWORD = 'secret';
/** bcrypt of the password. */
export const HTPASSWD = `${USER}:$2b$05$wjAuzKAVhfFmsHSfAUFXzOyG123GMaVGlqlbJab4QQH5yuwLvWlZq\n`;

/** A registry with a certificate authority of its own that lets nobody in without a password. */
export interface PrivateRegistry {
  readonly host: string;
  readonly caPem: string;
  /** A pull secret for it. */
  readonly authFile: string;
  readonly client: RegistryClient;
  /** Pushes a small image that can be staged, but has nothing to boot. @param content makes it another image. */
  push(content: string): Promise<DigestedPullspec>;
  stop(): Promise<void>;
}

/** @param base where it keeps what it has. */
export async function startPrivateRegistry(base: string): Promise<PrivateRegistry> {
  const dir = path.join(base, 'registry');
  await mkdir(dir);
  const authority = createAuthority('shale-lab-registry', new Date());
  const { certPem, keyPem } = authority.issueServer({ dns: ['localhost'], ipv4: ['127.0.0.1'] });
  const file = (name: string) => path.join(dir, name);
  await writeFile(file('tls.crt'), certPem);
  await writeFile(file('tls.key'), keyPem, { mode: 0o600 });
  await writeFile(file('htpasswd'), HTPASSWD);
  const { host, stop } = await startDockerRegistry({
    dir,
    tls: { certificate: file('tls.crt'), key: file('tls.key') },
    htpasswd: file('htpasswd'),
    launcher: DIE_WITH_PARENT,
  });
  const { caPem } = authority;
  const auth = Buffer.from(`${USER}:${PASSWORD}`).toString('base64');
  const authFile = JSON.stringify({ auths: { [host]: { auth } } });
  const client = createRegistryClient({ caFor: () => caPem, auths: parseAuthFile(authFile) });
  const push = (content: string) =>
    pushImage(
      { host, client },
      'os/private',
      {
        entries: [
          ...stockImage('1'),
          text('/usr/lib/ostree/prepare-root.conf', PREPARE_ROOT),
          text('/usr/share/private', content),
        ],
        bootable: true,
      },
      deadline(PUSH_MS),
    );
  return { host, caPem, authFile, client, push, stop };
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
