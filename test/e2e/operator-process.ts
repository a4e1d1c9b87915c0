import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa, type Options } from 'execa';
import { patience } from '../fixtures/patience.ts';
import { type ClusterUnderTest, NAMESPACE } from './cluster-under-test.ts';

const SHALE = path.join(import.meta.dirname, '../../bin/shale');

export interface OperatorPod {
  readonly name: string;
  /** Arguments beyond `operator`. */
  readonly args?: readonly string[];
  /** ms after which it is killed whatever happens. */
  readonly limitMs?: number;
}

/**
 * Writes into `dir` what a kubelet would mount into an operator's pod, and starts the operator there.
 *
 * @returns the process in an object: a child process is a promise of its end, and would be waited for.
 */
export async function startOperatorProcess(
  cluster: ClusterUnderTest,
  dir: string,
  { name, args = [], limitMs = 60_000 }: OperatorPod,
) {
  const account = path.join(dir, `${name}-account`);
  await mkdir(account, { recursive: true });
  const { url, caPem, token } = await cluster.access('shale-operator');
  await writeFile(path.join(account, 'token'), token, { mode: 0o600 });
  await writeFile(path.join(account, 'ca.crt'), caPem);
  const { hostname, port } = new URL(url);
  const options = {
    env: {
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
      SHALE_SERVICE_ACCOUNT_DIR: account,
      POD_NAMESPACE: NAMESPACE,
      POD_NAME: name,
    },
    reject: false,
    timeout: patience(limitMs),
  } as const satisfies Options;
  return { operator: execa(SHALE, ['operator', ...args], options) };
}
