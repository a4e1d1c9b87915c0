import { describe, expect, test } from 'vitest';
import { deadline } from '../../test/fixtures/patience.ts';
import { startScriptedRegistry } from '../../test/fixtures/registry/scripted-registry.ts';
import { digestOf } from '../digest.ts';
import { parseReference } from '../reference.ts';
import { createRegistryClient } from './registry-client.ts';

const signal = deadline(300_000);
const blob = { digest: digestOf('content'), size: 7, mediaType: '' };

async function read(host: string, plainHttp: readonly string[] = [host]): Promise<string> {
  const client = createRegistryClient({ plainHttp: new Set(plainHttp) });
  let content = '';
  for await (const chunk of client.readBlob(parseReference(`${host}/os`), blob, signal))
    content += Buffer.from(chunk).toString();
  return content;
}

describe('a blob', () => {
  test.each([301, 302, 303, 307, 308])('is read from where a %i says it is', async (status) => {
    const host = await startScriptedRegistry((request, response) => {
      if (request.url === '/storage/1?key=x') response.end('content');
      else response.writeHead(status, { location: '/storage/1?key=x' }).end();
    });
    expect(await read(host)).toBe('content');
  });

  test('is read over several hosts', async () => {
    const last = await startScriptedRegistry((_request, response) => response.end('content'));
    const middle = await startScriptedRegistry((_request, response) =>
      response.writeHead(302, { location: `http://${last}/` }).end(),
    );
    const host = await startScriptedRegistry((_request, response) =>
      response.writeHead(307, { location: `//${middle}/` }).end(),
    );
    expect(await read(host, [host, middle, last])).toBe('content');
  });

  test('that is redirected again and again is given up', async () => {
    let asked = 0;
    const host = await startScriptedRegistry((_request, response) => {
      asked += 1;
      response.writeHead(307, { location: '/again' }).end();
    });
    await expect(read(host)).rejects.toThrow('more than 5 redirects');
    expect(asked).toBe(6);
  });

  test('is not read over plain HTTP from a host that is not listed for it', async () => {
    const storage = await startScriptedRegistry((_request, response) => response.end('content'));
    const host = await startScriptedRegistry((_request, response) =>
      response.writeHead(307, { location: `http://${storage}/` }).end(),
    );
    await expect(read(host)).rejects.toThrow(`${storage} is not configured for plain HTTP`);
  });
});

test('an upload is not sent to where a redirect leads', async () => {
  const asked: string[] = [];
  const host = await startScriptedRegistry((request, response) => {
    asked.push(request.method ?? '');
    request.resume();
    response.writeHead(307, { location: '/elsewhere' }).end();
  });
  const client = createRegistryClient({ plainHttp: new Set([host]) });
  await expect(
    client.putBlob(parseReference(`${host}/os`), Buffer.from('content'), signal),
  ).rejects.toMatchObject({ status: 307, temporary: false });
  expect(asked).toEqual(['POST']);
});
