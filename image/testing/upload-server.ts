import { createHash, type Hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { finish } from '../digest.ts';
import { startScriptedServer } from './scripted-server.ts';

/** What happens to a piece: half of it arrives, the answer to it is lost, or the server has no time for it. */
export type Disturbance = 'cut' | 'deaf' | 'busy';

export interface UploadServerOptions {
  /** Its OCI-Chunk-Min-Length; bytes. */
  readonly minPiece?: number;
  /** Whether it takes blobs in pieces. */
  readonly pieces?: boolean;
  /** Whether it tells how much of an upload it has. */
  readonly status?: boolean;
  /** Whether it compares what it gets with its digest; what is gigabytes large it may count alone. */
  readonly verify?: boolean;
  /** @param piece counted from 1, with those that are sent again. */
  readonly disturb?: (piece: number) => Disturbance | undefined;
}

export interface UploadServer {
  /** `127.0.0.1:port`, plain HTTP. */
  readonly host: string;
  /** `METHOD status` of each request that was answered, and `METHOD -` of each that was not. */
  readonly requests: readonly string[];
  /** Content-Range and Content-Length of each piece. */
  readonly pieces: readonly { readonly range: string | undefined; readonly length: number }[];
  /** Sizes of the blobs that it has, by their digests. It keeps no byte of them. */
  readonly blobs: ReadonlyMap<string, number>;
}

interface Upload {
  readonly hash: Hash | undefined;
  received: number;
}

const UPLOADS = '/v2/os/blobs/uploads/';

/**
 * Starts a registry that takes blobs as the specification says (distribution-spec, "Pushing Blobs") and keeps of them what is
 * needed to check them: one upload at a time, of any size in no memory.
 */
export async function startUploadServer(options: UploadServerOptions = {}): Promise<UploadServer> {
  const {
    minPiece,
    pieces: takesPieces = true,
    status: tellsStatus = true,
    verify = true,
    disturb,
  } = options;
  const requests: string[] = [];
  const pieces: { range: string | undefined; length: number }[] = [];
  const blobs = new Map<string, number>();
  let upload: Upload | undefined;

  const answers: Readonly<Record<string, (request: IncomingMessage, digest: string) => Promise<Answer>>> = {
    HEAD: async (_request, digest) => ({ status: blobs.has(digest) ? 200 : 404 }),
    async POST() {
      upload = { hash: verify ? createHash('sha256') : undefined, received: 0 };
      const minimum = minPiece === undefined ? {} : { 'oci-chunk-min-length': String(minPiece) };
      return { status: 202, headers: { location: `${UPLOADS}1`, ...minimum } };
    },
    async PATCH(request) {
      const range = request.headers['content-range'];
      const length = Number(request.headers['content-length']);
      if (!takesPieces || upload === undefined) return { status: upload === undefined ? 404 : 405 };
      pieces.push({ range, length });
      if (!range?.startsWith(`${upload.received}-`)) return { status: 416 };
      const disturbance = disturb?.(pieces.length);
      if (disturbance === 'busy') return { status: 503, headers: { 'retry-after': '0' } };
      await take(request, upload, disturbance === 'cut' ? length / 2 : length + 1);
      return disturbance === undefined ? { status: 202, headers: { location: `${UPLOADS}1` } } : 'none';
    },
    async GET() {
      if (!tellsStatus || upload === undefined) return { status: 404 };
      return { status: 204, headers: { range: `0-${Math.max(upload.received - 1, 0)}` } };
    },
    async DELETE() {
      const known = upload !== undefined;
      upload = undefined;
      return { status: known ? 204 : 404 };
    },
    async PUT(request, digest) {
      if (upload === undefined) return { status: 404 };
      await take(request, upload);
      const right = upload.hash === undefined || finish(upload.hash) === digest;
      if (right) blobs.set(digest, upload.received);
      upload = undefined;
      return { status: right ? 201 : 400 };
    },
  };

  const host = await startScriptedServer((request, response) => {
    // Of a request whose body is not read to its end there is none later.
    const { socket } = request;
    const url = new URL(request.url ?? '', 'http://registry');
    const digest = url.searchParams.get('digest') ?? url.pathname.split('/').at(-1) ?? '';
    const answer = answers[request.method ?? '']?.(request, digest) ?? Promise.resolve({ status: 405 });
    void answer.then(
      (given) => {
        requests.push(`${request.method} ${given === 'none' ? '-' : given.status}`);
        if (given === 'none') socket.destroy();
        else give(request, response, given);
      },
      // The client went away in the middle.
      () => socket.destroy(),
    );
  });
  return { host, requests, pieces, blobs };
}

/** Takes a body, or its beginning: with the rest unread, the connection is cut. */
async function take(
  request: IncomingMessage,
  upload: Upload,
  atMost = Number.POSITIVE_INFINITY,
): Promise<void> {
  const end = upload.received + atMost;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    const taken = chunk.subarray(0, end - upload.received);
    upload.hash?.update(taken);
    upload.received += taken.length;
    if (upload.received === end) return;
  }
}

type Given = { readonly status: number; readonly headers?: Record<string, string> };
type Answer = Given | 'none';

function give(request: IncomingMessage, response: ServerResponse, { status, headers }: Given): void {
  request.resume();
  response.writeHead(status, headers).end();
}
