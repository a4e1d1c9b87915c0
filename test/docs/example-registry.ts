import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createAuthority } from '../../x509/certificate.ts';

/**
 * The registry that the pages name, in the network that a page's shell has for itself (shell.ts): Debian's
 * docker-registry, with a certificate of an authority of its own, which is left in ca.pem.
 *
 *   eval "$(node test/docs/example-registry.ts [USER...])"
 *
 * prints what starts it and waits for it. With users, nobody else comes in; the password of each is `secret`. Pages
 * that share a sandbox share a registry too: nodes run images of the pages before. Then it runs already.
 */
export const EXAMPLE_REGISTRIES = ['registry.example.com', 'mirror.example.com'] as const;

/** Environment variable: the directory of the registry that runs already. */
export const RUNNING_REGISTRY = 'EXAMPLE_REGISTRY';
const CA = 'ca.pem';

const [host] = EXAMPLE_REGISTRIES;
/** bcrypt of `secret`, which is no secret. */
const HASH = '$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a';
const READY_S = 60;
/** For this machine's own tools; nodes and builder get it from the cluster. */
const TRUST = `export SSL_CERT_FILE=${path.resolve(CA)}`;

/** @param home where the commands run that start it. @returns its directory. */
export function registryIn(home: string): string {
  return path.join(home, 'example-registry');
}

/** @returns commands of a shell. @throws {Error} when the one that runs would let others in than the users. */
async function join(running: string, users: readonly string[]): Promise<string> {
  if (users.length > 0) throw new Error('the registry that runs already lets everybody in');
  await copyFile(path.join(running, CA), CA);
  return TRUST;
}

/** @returns commands of a shell. */
async function prepare(dir: string, users: readonly string[]): Promise<string> {
  await mkdir(dir, { recursive: true });
  const file = (name: string) => path.join(dir, name);
  const authority = createAuthority('example', new Date());
  const { certPem, keyPem } = authority.issueServer({ dns: [...EXAMPLE_REGISTRIES], ipv4: [] });
  for (const ca of [CA, file(CA)]) await writeFile(ca, authority.caPem);
  await writeFile(file('tls.crt'), certPem);
  await writeFile(file('tls.key'), keyPem, { mode: 0o600 });
  await writeFile(file('htpasswd'), users.map((user) => `${user}:${HASH}\n`).join(''));
  const auth = { htpasswd: { realm: 'registry', path: file('htpasswd') } };
  const configuration = {
    version: 0.1,
    log: { level: 'error' },
    storage: { filesystem: { rootdirectory: file('blobs') }, delete: { enabled: true } },
    http: { addr: `${host}:443`, tls: { certificate: file('tls.crt'), key: file('tls.key') } },
    ...(users.length === 0 ? {} : { auth }),
  };
  await writeFile(file('config.yml'), JSON.stringify(configuration));
  return [
    TRUST,
    `setpriv --pdeathsig KILL -- docker-registry serve ${file('config.yml')} >${file('log')} 2>&1 &`,
    `timeout ${READY_S} bash -c 'until (: </dev/tcp/${host}/443) 2>/dev/null; do sleep 0.1; done'`,
  ].join('\n');
}

if (import.meta.main) {
  const running = process.env[RUNNING_REGISTRY];
  const users = process.argv.slice(2);
  const commands = running === undefined ? prepare(registryIn(process.cwd()), users) : join(running, users);
  process.stdout.write(`${await commands}\n`);
}
