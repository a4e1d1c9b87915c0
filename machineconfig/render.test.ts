import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { MachineConfig } from '../api/machine-config.ts';
import { annotations } from '../api/names.ts';
import { files, generated, problemsOf, render } from '../test/fixtures/rendering.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { MAX_OBJECT_BYTES, renderPool } from './render.ts';
import { file, ignition, machineConfig, pool } from './testdata/build.ts';

describe('a pool that selects no MachineConfig', () => {
  const selector = { machineConfigSelector: { matchLabels: { role: 'infra' } } };
  const source = [{ apiVersion: 'machineconfiguration.openshift.io/v1', kind: 'MachineConfig', name: 'a' }];

  it('asks nothing of its nodes if it never did', () => {
    const { rendered, sources } = render([], { pool: pool('infra', selector) });
    expect(sources).toEqual([]);
    const parsed = parseNodeConfig(rendered);
    expect(parsed.ok && parsed.config).toMatchObject({ files: new Map(), units: new Map() });
    const configuration = { name: rendered.metadata.name, source: [] };
    const again = render([], { pool: pool('infra', { ...selector, configuration }) });
    expect(again.rendered.metadata.name).toBe(rendered.metadata.name);
  });

  it.each([
    ['names them', { name: 'rendered-infra-1', source }],
    ['may have had them', { name: 'rendered-infra-1' }],
  ])('is refused if its configuration %s', (_what, configuration) => {
    const [problem] = problemsOf([], { pool: pool('infra', { ...selector, configuration }) });
    expect(problem?.problems[0]).toMatchObject({ path: 'pool/infra', reason: 'selects no MachineConfig' });
    expect(problem?.problems[0]?.expected).toMatch(/keep one MachineConfig without content/);
  });
});

describe('a rendered config', () => {
  it('is named by pool and content, and owned by the pool', () => {
    const { rendered } = render([machineConfig('a', files(file('/a', 'x')))]);
    expect(rendered.metadata.name).toMatch(/^rendered-infra-[0-9a-f]{32}$/);
    expect(rendered.metadata.annotations).toEqual({ [annotations.generatedByController]: 'v1' });
    expect(rendered.metadata.ownerReferences).toEqual([
      {
        apiVersion: 'machineconfiguration.openshift.io/v1',
        kind: 'MachineConfigPool',
        name: 'infra',
        uid: 'uid-of-infra',
        controller: true,
        blockOwnerDeletion: true,
      },
    ]);
  });

  it('keeps its name from release to release: a new name is a rollout', () => {
    expect(render([machineConfig('a', files(file('/a', 'x')))]).rendered.metadata.name).toMatchInlineSnapshot(
      `"rendered-infra-c29c3bc25941f795e95aa233f1776496"`,
    );
  });

  it('has another name for another content, and the same for other names of its sources', () => {
    const name = (source: string, text: string) =>
      render([machineConfig(source, files(file('/a', text)))]).rendered.metadata.name;
    expect(name('a', 'x')).not.toBe(name('a', 'y'));
    expect(name('a', 'x')).toBe(name('b', 'x'));
  });

  it('can be rendered from MachineConfigs without an Ignition config', () => {
    const { rendered } = render([machineConfig('a', undefined, { kernelArguments: ['quiet'] })]);
    expect(rendered.spec).toMatchObject({
      config: { ignition: { version: '3.5.0' } },
      kernelArguments: ['quiet'],
      kernelType: 'default',
      fips: false,
      extensions: [],
    });
  });
});

describe('merge order', () => {
  it("takes worker's first and the rest after it, each by name", () => {
    const configs = [
      machineConfig('10-infra', files(file('/a', 'infra')), {}, 'infra'),
      machineConfig('99-worker', files(file('/a', 'worker')), {}, 'worker'),
      machineConfig('9-worker', undefined, {}, 'worker'),
      machineConfig('00-other', undefined, {}, 'other'),
    ];
    const { rendered, sources } = render(configs);
    expect(sources).toEqual(['9-worker', '99-worker', '00-other', '10-infra']);
    expect(rendered.spec.config).toMatchObject({
      storage: { files: [{ contents: { source: 'data:,infra' } }] },
    });
  });
});

describe('fields outside the Ignition config', () => {
  it('concatenates kernel arguments and extensions with their duplicates, in merge order', () => {
    const { rendered } = render([
      machineConfig('b', undefined, { kernelArguments: ['x', 'y'], extensions: ['usbguard'] }),
      machineConfig('a', undefined, { kernelArguments: ['x'], extensions: ['usbguard'] }),
    ]);
    expect(rendered.spec.kernelArguments).toEqual(['x', 'x', 'y']);
    expect(rendered.spec.extensions).toEqual(['usbguard', 'usbguard']);
  });

  it('takes the last kernel type that is not the default', () => {
    const types = (...kernelTypes: string[]) =>
      render(kernelTypes.map((kernelType, index) => machineConfig(`${index}`, undefined, { kernelType })))
        .rendered.spec.kernelType;
    expect(types('default', '')).toBe('default');
    expect(types('realtime', 'default')).toBe('realtime');
    expect(types('realtime', '64k-pages', '')).toBe('64k-pages');
  });

  it('is FIPS if any config is', () => {
    expect(
      render([machineConfig('a', undefined, { fips: true }), machineConfig('b', undefined, { fips: false })])
        .rendered.spec.fips,
    ).toBe(true);
  });

  it("takes the image of the pool's stream unless a person set osImageURL, and says so then", () => {
    const image = `registry.example.com/os@sha256:${'a'.repeat(64)}`;
    const streams = { next: image, same: image };
    const of = (name: string, ...configs: MachineConfig[]) =>
      renderPool({
        pool: pool('worker', { ...pool('worker').spec, osImageStream: { name } }),
        configs,
        controllerVersion: 'test',
        streams,
      });
    const plain = of('next', machineConfig('a', undefined));
    expect(plain).toMatchObject({ ok: true, rendered: { spec: { osImageURL: image } }, warnings: [] });
    const other = of('same', machineConfig('a', undefined));
    expect(plain.ok && other.ok && plain.rendered.metadata.name !== other.rendered.metadata.name).toBe(true);
    const set = of('next', machineConfig('a', undefined, { osImageURL: 'mine' }));
    expect(set).toMatchObject({
      ok: true,
      rendered: { spec: { osImageURL: 'mine' } },
      warnings: [
        {
          machineConfig: 'a',
          problems: [{ path: 'spec.osImageURL', reason: 'overrides the stream "next" of pool worker' }],
        },
      ],
    });
    expect(set.ok && set.rendered.metadata.annotations).not.toHaveProperty('shale.dev/os-image-stream');
  });

  it("takes the image of worker's stream for a custom pool that names none, and lets it override without a word", () => {
    const image = `registry.example.com/os@sha256:${'a'.repeat(64)}`;
    const worker = pool('worker', { ...pool('worker').spec, osImageStream: { name: 'next' } });
    const of = (...configs: MachineConfig[]) =>
      renderPool({
        pool: pool('infra'),
        worker,
        configs,
        controllerVersion: 'test',
        streams: { next: image },
      });
    const plain = of(machineConfig('a', undefined));
    expect(plain).toMatchObject({
      ok: true,
      rendered: {
        metadata: { annotations: { 'shale.dev/os-image-stream': 'next' } },
        spec: { osImageURL: image },
      },
      warnings: [],
    });
    const set = of(machineConfig('a', undefined, { osImageURL: 'mine' }));
    expect(set).toMatchObject({ ok: true, rendered: { spec: { osImageURL: 'mine' } }, warnings: [] });
  });

  it("takes the last osImageURL that a person set, else the cluster's own", () => {
    const os = (...configs: MachineConfig[]) =>
      render(configs, { defaultImages: { os: 'default' } }).rendered.spec.osImageURL;
    const setting = (name: string, osImageURL: string) => machineConfig(name, undefined, { osImageURL });
    expect(os(machineConfig('a', undefined))).toBe('default');
    expect(os(setting('a', '1'), setting('b', '2'), setting('c', ''))).toBe('2');
    expect(os(setting('a', '1'), generated(setting('b', '2')))).toBe('1');
    expect(os(generated(setting('b', '2')))).toBe('default');
  });

  it('refuses kernel-devel with another kernel', () => {
    expect(
      problemsOf([
        machineConfig('a', undefined, { extensions: ['kernel-devel'] }),
        machineConfig('b', undefined, { kernelType: 'realtime' }),
      ]),
    ).toMatchObject([{ machineConfig: 'a', problems: [{ path: 'spec.extensions' }] }]);
  });
});

describe('refusals', () => {
  it('name every invalid MachineConfig and all of its problems', () => {
    const problems = problemsOf([
      machineConfig('good', files(file('/a', ''))),
      machineConfig('bad', files({ path: 'a' }, { path: '/b', mode: -1 }), { kernelType: 'odd' }),
      machineConfig('worse', { ignition: { version: '4.0.0' } }, { extensions: ['nano'] }),
    ]);
    expect(
      problems.map(({ machineConfig, problems }) => [machineConfig, problems.map(({ path }) => path)]),
    ).toEqual([
      ['bad', ['spec.kernelType', '$.storage.files[0].path', '$.storage.files[1].mode']],
      ['worse', ['spec.extensions[0]', '$.ignition.version']],
    ]);
  });

  it('want no carriage return within an SSH key, which many show as the end of a line', () => {
    const passwd = {
      users: [{ name: 'core', sshAuthorizedKeys: ['ssh-a A\r\n', 'ssh-b B\r\nssh-c C', 'ssh-d\rD'] }],
    };
    expect(problemsOf([machineConfig('keys', ignition({ passwd }))])).toMatchObject([
      { machineConfig: 'keys', problems: [{ path: '$.passwd.users[0].sshAuthorizedKeys[2]' }] },
    ]);
  });

  it('want a pool to have a selector', () => {
    expect(problemsOf([])).toMatchObject([{ problems: [{ path: 'pool/infra' }] }]);
    const emptySelector = pool('infra', { machineConfigSelector: { matchLabels: {} } });
    expect(problemsOf([], { pool: emptySelector })).toMatchObject([{ problems: [{ path: 'pool/infra' }] }]);
  });

  it('want labels', () => {
    const config = machineConfig('a', undefined);
    const { labels: _, ...metadata } = config.metadata;
    expect(problemsOf([{ ...config, metadata }])).toMatchObject([
      { problems: [{ path: 'metadata.labels' }] },
    ]);
  });

  it.each([
    [
      'an owner by id and by name',
      files(file('/a', '', { user: { id: 1 } })),
      files(file('/a', '', { user: { name: 'x' } })),
    ],
    [
      'a file through a link',
      files(file('/l/a', '')),
      ignition({ storage: { links: [{ path: '/l', target: '/x' }] } }),
    ],
    ['contents nobody gives', files({ path: '/a' }), files({ path: '/a', mode: 0o600 })],
    ['appending', files({ path: '/a', append: [{ source: 'data:,x' }] }), files(file('/a', ''))],
  ])('find what only the merge makes wrong: %s', (_, one, other) => {
    const problems = problemsOf([machineConfig('one', one), machineConfig('two', other)]);
    expect(problems).toHaveLength(1);
    expect(['one', 'two']).toContain(problems[0]?.machineConfig);
    expect(problems[0]?.problems[0]?.path).toMatch(/^\$\.storage\.files\[0\]/);
  });

  it('name the MachineConfigs that cause a problem of the merge', () => {
    const owner = (user: object) => files(file('/a', '', { user }));
    const problems = problemsOf([
      machineConfig('one', owner({ id: 1 })),
      machineConfig('two', owner({ name: 'x' })),
    ]);
    expect(problems).toMatchObject([
      { machineConfig: 'two', problems: [{ reason: 'has both id and name (also in one)' }] },
    ]);
  });

  it('keep to what the API can store, and name the largest', () => {
    const large = (name: string, bytes: number) =>
      machineConfig(name, files(file(`/${name}`, 'x'.repeat(bytes))));
    const [problem] = problemsOf([large('small', 1000), large('huge', MAX_OBJECT_BYTES)]);
    expect(problem?.problems[0]?.reason).toMatch(
      /more than the API server stores in an object \(huge: \d+, small: \d+\)/,
    );
  });

  it('count bytes exactly', () => {
    const configs = [machineConfig('a', files(file('/a', 'ü')))];
    const bytes = Buffer.byteLength(JSON.stringify(render(configs).rendered));
    expect(problemsOf(configs, { maxObjectBytes: bytes })).toEqual([]);
    expect(problemsOf(configs, { maxObjectBytes: bytes - 1 })).toHaveLength(1);
  });

  it('count the decompressed contents of all configs together', () => {
    const zeros = (name: string) =>
      machineConfig(
        name,
        files({
          path: `/${name}`,
          contents: {
            compression: 'gzip',
            source: `data:;base64,${gzipSync(Buffer.alloc(1000)).toString('base64')}`,
          },
        }),
      );
    const limits = { fileBytes: 1000, configBytes: 1999 };
    expect(problemsOf([zeros('a')], { limits })).toEqual([]);
    expect(problemsOf([zeros('a'), zeros('b')], { limits })).toMatchObject([{ machineConfig: 'b' }]);
  });
});
