import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { filesBelow, findNeedles, needlesOf, needlesOfKey, newCanary, sampleProcesses } from './canaries.ts';

const canary = newCanary();
const needles = needlesOf('canary', Buffer.from(canary));
const find = (text: string) => findNeedles([{ where: 'log', bytes: Buffer.from(text) }], needles);

test.each([
  ['as it is', `password=${canary}-more`],
  ['in base64', Buffer.from(`${canary}-more`).toString('base64')],
  ['in base64 after one byte', Buffer.from(`x${canary}-more`).toString('base64')],
  ['in base64 after two bytes', Buffer.from(`xy${canary}-more`).toString('base64url')],
  ['in hexadecimal', Buffer.from(`x${canary}`).toString('hex')],
  ['in upper case', Buffer.from(canary).toString('hex').toUpperCase()],
])('a secret that stands there %s is found', (_name, text) => {
  expect(find(`{"msg":"${text}"}`)).toHaveLength(1);
});

test('another secret is not', () => {
  expect(find(newCanary())).toEqual([]);
});

test('a private key is found by its number and by its lines, and its public key is not', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const ofKey = needlesOfKey('key', pem);
  const findKey = (text: string | Buffer) =>
    findNeedles([{ where: 'it', bytes: Buffer.from(text) }], ofKey).length > 0;
  expect(findKey(pem)).toBe(true);
  expect(findKey(Buffer.from(pem).toString('base64'))).toBe(true);
  expect(findKey(privateKey.export({ type: 'sec1', format: 'der' }))).toBe(true);
  expect(findKey(publicKey.export({ type: 'spki', format: 'pem' }).toString())).toBe(false);
  expect(needlesOfKey('none', 'text').size).toBe(0);
});

test('layers are looked through without their compression', async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'shale-canaries-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  await writeFile(path.join(dir, 'data'), gzipSync(`${'x'.repeat(1000)}${canary}`));
  const files = [];
  for await (const file of filesBelow(dir)) files.push(file);
  expect(findNeedles(files, needles)).toEqual([`${path.join(dir, 'data')}: canary`]);
});

test('arguments and environments of processes below this one are seen', async () => {
  const child = spawn('sh', ['-c', 'echo up; read end', `argument-${canary}`], {
    env: { PASSWORD: canary },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  const samples = sampleProcesses(process.pid).stop();
  child.stdin.end();
  await once(child, 'exit');
  const found = findNeedles(samples, needles);
  expect(found.map((each) => each.split(' ')[0]).sort()).toEqual(['cmdline', 'environ']);
});
