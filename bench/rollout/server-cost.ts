import { request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import type { ControlPlane } from '../../workshop/apiserver/control-plane/control-plane.ts';

/** What kube-apiserver and its etcd have done so far, by their own metrics. */
interface ServerCost {
  /** Requests of all clients by verb, resource and subresource; watches apart. */
  readonly requests: ReadonlyMap<string, number>;
  /** What etcd has done, in words. */
  readonly etcd: ReadonlyMap<string, number>;
}

const ETCD_METRICS: readonly (readonly [metric: string, words: string])[] = [
  ['etcd_mvcc_put_total', 'keys put'],
  ['etcd_mvcc_delete_total', 'keys deleted'],
  ['etcd_network_client_grpc_received_bytes_total', 'bytes received'],
  ['etcd_network_client_grpc_sent_bytes_total', 'bytes sent'],
  ['etcd_disk_wal_write_bytes_total', 'bytes of log'],
  ['etcd_mvcc_db_total_size_in_bytes', 'bytes of database'],
];

/** @returns what a control plane has done so far; undefined for one without etcd. */
export async function serverCost({ access, etcdUrl }: ControlPlane): Promise<ServerCost | undefined> {
  if (etcdUrl === undefined) return undefined;
  const headers = { authorization: `Bearer ${access.token}` };
  const server = await answerOf(secureRequest(`${access.url}/metrics`, { ca: access.caPem, headers }));
  const requests = new Map<string, number>();
  for (const { name, labels, value } of samplesOf(server)) {
    const { verb = '', resource = '', subresource = '' } = labels;
    if (name !== 'apiserver_request_total' || verb === 'WATCH' || resource === '') continue;
    const key = `${verb.toLowerCase()} ${resource}${subresource === '' ? '' : `/${subresource}`}`;
    requests.set(key, (requests.get(key) ?? 0) + value);
  }
  const samples = samplesOf(await answerOf(plainRequest(`${etcdUrl}/metrics`)));
  const etcd = ETCD_METRICS.map(([metric, words]) => {
    const value = samples.filter(({ name }) => name === metric).reduce((sum, each) => sum + each.value, 0);
    return [words, value] as const;
  });
  return { requests, etcd: new Map(etcd) };
}

/** @returns what was done between two moments, without what was not. */
export function costBetween(before: ServerCost, after: ServerCost): ServerCost {
  const difference = (kind: keyof ServerCost) =>
    new Map(
      [...after[kind]]
        .map(([key, value]) => [key, value - (before[kind].get(key) ?? 0)] as const)
        .filter(([, value]) => value !== 0)
        .toSorted(([, a], [, b]) => b - a),
    );
  return { requests: difference('requests'), etcd: difference('etcd') };
}

async function answerOf(request: ReturnType<typeof plainRequest>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  request.once('response', (response) => void text(response).then(resolve, reject));
  request.once('error', reject);
  request.end();
  return promise;
}

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Prometheus' text format, as far as these two write it. */
function samplesOf(metrics: string): Sample[] {
  return metrics.split('\n').flatMap((line) => {
    const [, name = '', labels = '', value = ''] = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === '') return [];
    const pairs = [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key = '', text = '']) => [key, text]);
    return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }];
  });
}
