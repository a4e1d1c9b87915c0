import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request } from 'node:http';

/** What has to be asked of a registry for one appended layer, and nothing else. */
interface BareAppend {
  /** `127.0.0.1:port` */
  readonly host: string;
  readonly base: { readonly repository: string; readonly tag: string };
  readonly target: { readonly repository: string; readonly tag: string };
  readonly layer: Uint8Array;
}

/**
 * Sends the requests of an append over one connection, one after the other, without looking at what comes: the bound
 * that no client can be under.
 *
 * @returns seconds, and how many requests there were.
 */
export async function bareAppend({ host, base, target, layer }: BareAppend) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const [hostname = '', port = ''] = host.split(':');
  let requests = 0;
  const ask = async (method: string, url: string, body?: Uint8Array, type = 'application/octet-stream') => {
    requests += 1;
    const { pathname, search } = new URL(url, `http://${host}`);
    const asked = request({
      agent,
      hostname,
      port,
      method,
      path: `${pathname}${search}`,
      headers: {
        accept: 'application/vnd.docker.distribution.manifest.v2+json',
        'content-type': type,
        'content-length': String(body?.length ?? 0),
      },
    });
    asked.end(body);
    const [answer] = (await once(asked, 'response')) as [import('node:http').IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    const status = answer.statusCode ?? 0;
    if (status >= 400) throw new Error(`${method} ${url}: ${status} ${Buffer.concat(chunks).toString()}`);
    return { location: answer.headers.location ?? '', body: Buffer.concat(chunks) };
  };
  const upload = async (bytes: Uint8Array) => {
    const digest = sha256(bytes);
    const { location } = await ask('POST', `/v2/${target.repository}/blobs/uploads/`);
    const url = new URL(location, `http://${host}`);
    url.searchParams.set('digest', digest);
    await ask('PUT', url.href, bytes);
    return digest;
  };
  const start = performance.now();
  const manifest = JSON.parse(
    (await ask('GET', `/v2/${base.repository}/manifests/${base.tag}`)).body.toString(),
  );
  const config = (await ask('GET', `/v2/${base.repository}/blobs/${manifest.config.digest}`)).body;
  for (const { digest } of manifest.layers) {
    await ask('POST', `/v2/${target.repository}/blobs/uploads/?mount=${digest}&from=${base.repository}`);
  }
  const layerDigest = await upload(layer);
  const document = Buffer.from(
    JSON.stringify({ ...JSON.parse(config.toString()), comment: String(Math.random()) }),
  );
  const digest = await upload(document);
  const added = { mediaType: manifest.layers[0].mediaType, digest: layerDigest, size: layer.length };
  const body = {
    ...manifest,
    config: { ...manifest.config, digest, size: document.length },
    layers: [...manifest.layers, added],
  };
  const bytes = Buffer.from(JSON.stringify(body));
  await ask('PUT', `/v2/${target.repository}/manifests/${target.tag}`, bytes, manifest.mediaType);
  const seconds = (performance.now() - start) / 1000;
  agent.destroy();
  return { seconds, requests };
}

function sha256(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
