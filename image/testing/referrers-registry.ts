import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { digestOf } from '../digest.ts';

export interface ReferrersRegistry {
  /** `127.0.0.1:port`, plain HTTP. */
  readonly host: string;
  /** Tags that were written, in order. */
  readonly tags: readonly string[];
  stop(): Promise<void>;
}

type Answer = (request: IncomingMessage, response: ServerResponse, at: { key: string; url: URL }) => unknown;

const PAGE = 2;

/**
 * A registry in memory with the referrers API, which Debian's docker-registry has not; as much of it as pushing artifacts
 * and listing them needs, of one repository, two referrers to a page.
 *
 * @param endless its lists always have another page.
 */
export async function startReferrersRegistry({ endless = false } = {}): Promise<ReferrersRegistry> {
  const blobs = new Set<string>();
  const manifests = new Map<string, { subject?: { digest: string }; size: number; artifactType?: string }>();
  const tags: string[] = [];

  const answers: Readonly<Record<string, Answer>> = {
    'HEAD blobs': (_request, response, { key }) => response.writeHead(blobs.has(key) ? 200 : 404).end(),
    'POST blobs': (_request, response, { url }) =>
      response.writeHead(202, { location: `${url.pathname}1` }).end(),
    'PUT blobs': (_request, response, { url }) => {
      blobs.add(url.searchParams.get('digest') ?? '');
      response.writeHead(201).end();
    },
    'PUT manifests': async (request, response, { key }) => {
      const bytes = await bodyOf(request);
      const manifest = JSON.parse(bytes.toString()) as {
        subject?: { digest: string };
        artifactType?: string;
      };
      if (!key.startsWith('sha256:')) tags.push(key);
      manifests.set(digestOf(bytes), { ...manifest, size: bytes.length });
      const { subject } = manifest;
      response.writeHead(201, subject === undefined ? {} : { 'oci-subject': subject.digest }).end();
    },
    'GET referrers': (_request, response, { key, url }) => {
      const all = [...manifests]
        .filter(([, { subject }]) => subject?.digest === key)
        .map(([digest, { size, artifactType }]) => ({ mediaType: 'm', digest, size, artifactType }));
      const from = Number(url.searchParams.get('from') ?? '0');
      const more = endless || all.length > from + PAGE;
      const link = more ? { link: `<${url.pathname}?from=${from + PAGE}>; rel="next"` } : {};
      response.writeHead(200, { 'content-type': 'application/vnd.oci.image.index.v1+json', ...link });
      response.end(JSON.stringify({ schemaVersion: 2, manifests: all.slice(from, from + PAGE) }));
    },
  };

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://registry');
    const [, kind = '', key = ''] = /\/(blobs|manifests|referrers)\/(.*)$/.exec(url.pathname) ?? [];
    const answer = answers[`${request.method} ${kind}`];
    if (answer === undefined) response.writeHead(404).end();
    else void answer(request, response, { key, url });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    tags,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
