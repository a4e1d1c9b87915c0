import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { deadline, patience } from '../../test/fixtures/patience.ts';
import { startScriptedServer } from '../../test/fixtures/registry/scripted-server.ts';
import { startUploadServer } from '../../test/fixtures/registry/upload-server.ts';
import { isDrawn } from '../../test/fixtures/sample.ts';
import { parseDigest } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { createRegistryClient } from './registry-client.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** Digests of as many bytes that are zero: `head -c 5G /dev/zero | sha256sum`. Hashing is what takes the time. */
const DIGESTS: Readonly<Record<string, string>> = {
  '5': 'sha256:7f06c62352aebd8125b2a1841e2b9e1ffcbed602f381c3dcb3200200e383d1d5',
  '10': 'sha256:732377e7f4a2abdc13ddfa1eb4c9c497fd2a2b294674d056cf51581b47dd586d',
};
/** Beyond 4 GiB, where a length of 32 bits would end. */
const SIZE_GIB = process.env['SHALE_LARGE_BLOB_GIB'] ?? '5';
const LIMIT_MS = 300_000;
/** Of this process, which is both registries too. Many times more would go through it. */
const GROWTH_MIB = 256;

function* zeros(size: number): Generator<Uint8Array> {
  const chunk = Buffer.alloc(MIB);
  for (let left = size; left > 0; left -= MIB) yield chunk;
}

test.skipIf(!isDrawn('large-blob', 6))(
  `a blob of ${SIZE_GIB} GiB goes from one registry to another in little memory and on no disk`,
  async () => {
    const size = Number(SIZE_GIB) * GIB;
    const blob = { digest: parseDigest(DIGESTS[SIZE_GIB] ?? ''), size, mediaType: '' };
    const from = await startScriptedServer((_request, response) => {
      response.writeHead(200, { 'content-length': size });
      void pipeline(Readable.from(zeros(size)), response);
    });
    const to = await startUploadServer({ verify: false });
    const client = createRegistryClient({ plainHttp: new Set([from, to.host]) });
    const signal = deadline(LIMIT_MS);
    const before = process.memoryUsage.rss();
    let peak = before;
    let read = 0;
    async function* watched(): AsyncGenerator<Uint8Array> {
      for await (const chunk of client.readBlob(parseReference(`${from}/os`), blob, signal)) {
        // Now and then: asking costs more than a chunk.
        if (Math.floor((read + chunk.length) / MIB) % 16 === 0)
          peak = Math.max(peak, process.memoryUsage.rss());
        read += chunk.length;
        yield chunk;
      }
    }
    await client.putBlobStream(parseReference(`${to.host}/os`), blob, watched(), signal);
    expect(to.blobs.get(blob.digest)).toBe(size);
    expect((peak - before) / MIB).toBeLessThan(GROWTH_MIB);
  },
  patience(LIMIT_MS),
);
