import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { bootcDeployments, bootcObstacle, parseBootcStatus } from './status.ts';

const transcript = (name: string) =>
  parseBootcStatus(readFileSync(path.join(import.meta.dirname, 'transcripts', name), 'utf8'));
const image = (digit: string) => `quay.io/example/os@sha256:${digit.repeat(64)}`;
const id = (digit: string, serial = 0) => `${digit.repeat(64)}.${serial}`;
const plain = {
  isBooted: false,
  isPinned: false,
  packages: { installed: [], removed: [] },
};

describe('bootcDeployments', () => {
  it('knows the image of each by digest, also where it was installed by tag', () => {
    expect([...bootcDeployments(transcript('1.16-staged.json'))]).toEqual([
      [id('2'), { ...plain, canSoftReboot: true, image: image('b') }],
      [id('1'), { ...plain, isBooted: true, image: image('a') }],
      [id('0', 1), { ...plain, image: image('9') }],
      // An image of this host's own storage can't be had by its name.
      [id('8'), { ...plain, isPinned: true }],
    ]);
  });

  it.each([
    ['1.1-booted.json', [image('a'), image('9')]],
    ['1.16-rollback-queued.json', [image('a'), image('9')]],
    ['1.16-ostree-remote.json', [undefined]],
    ['1.16-changed-by-rpm-ostree.json', [undefined]],
    ['1.16-composefs-uki.json', []],
    ['1.16-not-booted.json', []],
  ])('%s', (name, images) => {
    expect([...bootcDeployments(transcript(name)).values()].map((deployment) => deployment.image)).toEqual(
      images,
    );
  });
});

/** @returns what bootc 1.16.9 printed, step by step of a machine's life. @param name of the record. */
const record = (name: string) =>
  (
    JSON.parse(
      readFileSync(path.join(import.meta.dirname, '../../../test/os-tools/recorded', name), 'utf8'),
    ) as { readonly step: string; readonly status?: unknown }[]
  ).flatMap(({ step, status }) => (status === undefined ? [] : [[step, JSON.stringify(status)] as const]));
const recorded = record('bootc-1.16.9.json');

describe('a status that was recorded', () => {
  it.each([
    ['as installed', ['1']],
    ['one image staged', ['2', '1']],
    ['another image staged', ['3', '1']],
    ['booted from what was staged', ['3', '1']],
    ['rollback queued', ['3', '1']],
    ['what was staged is gone', ['3', '1']],
    ['finalized by Shale', ['3', '2']],
    ['booted from what Shale finalized', ['2', '3']],
  ])('%s', (step, images) => {
    const host = parseBootcStatus(recorded.find(([name]) => name === step)?.[1] ?? '');
    expect([...bootcDeployments(host).values()].map((each) => each.image)).toEqual(images.map(image));
    expect(bootcObstacle(host)).toBeUndefined();
  });
});

describe('bootcObstacle', () => {
  it.each([
    ['1.1-booted.json', undefined],
    ['1.16-staged.json', undefined],
    ['1.16-ostree-remote.json', undefined],
    ['1.16-not-booted.json', /not booted/],
    ['1.16-changed-by-rpm-ostree.json', /changed by rpm-ostree/],
  ])('%s: %s', (name, why) => {
    const obstacle = bootcObstacle(transcript(name));
    if (why === undefined) expect(obstacle).toBeUndefined();
    else expect(obstacle).toMatch(why);
  });

  it('is a physical root that can’t be written to', () => {
    const host = transcript('1.1-booted.json');
    expect(bootcObstacle({ ...host, status: { ...host.status, readOnly: true } })).toMatch(/read-only/);
  });
});

describe('parseBootcStatus', () => {
  it.each([
    ['no JSON', 'error: Operation not permitted'],
    ['another version', '{"apiVersion":"org.containers.bootc/v2","kind":"BootcHost","status":{}}'],
    ['no status', '{"apiVersion":"org.containers.bootc/v1","kind":"BootcHost"}'],
    [
      'half of it',
      readFileSync(path.join(import.meta.dirname, 'transcripts/1.1-booted.json'), 'utf8').slice(0, 400),
    ],
  ])('refuses %s', (_name, text) => {
    expect(() => parseBootcStatus(text)).toThrow('org.containers.bootc/v1');
  });
});
