import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { parse, stringify } from 'yaml';
import { chartFiles } from '../charts/chart-files.ts';
import { type Descriptor, descriptorOf, digestOf } from '../image/digest.ts';
import { archiveEntries, END_OF_ARCHIVE } from '../image/layer/write-layer.ts';
import { formatManifest } from '../image/manifest.ts';
import { OCI_MANIFEST } from '../image/registry/manifest-type.ts';
import { readKustomization } from '../workshop/sandbox/manifests/kustomization.ts';
import { type Content, CREATED } from './image.ts';
import { fileEntry } from './shale-files.ts';

/*
 * What a release is installed with: the chart, or a file of manifests. Either names the image by digest.
 */

/** helm.sh/docs/topics/registries, "Helm chart manifest". */
const CHART_CONFIG = 'application/vnd.cncf.helm.config.v1+json';
const CHART_LAYER = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';

/** Directories of the manifests' variants, and the image that they name. */
const OVERLAYS = path.join(import.meta.dirname, '../manifests/overlays');
const PLACEHOLDER = 'shale:latest';

/** The chart as a file and as an OCI artefact. */
export interface Chart {
  readonly archive: Buffer;
  readonly content: Content;
  readonly manifest: Descriptor;
}

/**
 * Packages the chart as `helm package` does, and as `helm push` sends it. The same image gives the same bytes.
 *
 * @param image by digest: what the chart installs where no value says otherwise.
 */
export async function packagedChart(image: string, version: string): Promise<Chart> {
  const files = await chartFiles(image);
  const names = [...files.keys()].sort();
  // Helm reads Chart.yaml first, and everything lies below a directory of the chart's name.
  const entries = ['Chart.yaml', ...names.filter((name) => name !== 'Chart.yaml')].map((name) =>
    fileEntry(`/shale/${name}`, files.get(name) ?? ''),
  );
  const archive = gzipSync(Buffer.concat([await archiveEntries(entries, 0), END_OF_ARCHIVE]), { level: 9 });
  const about = parse(files.get('Chart.yaml') ?? '') as Readonly<Record<string, string>>;
  const config = Buffer.from(JSON.stringify(about));
  const layer = descriptorOf(CHART_LAYER, archive);
  const bytes = formatManifest({
    config: descriptorOf(CHART_CONFIG, config),
    layers: [layer],
    annotations: {
      'org.opencontainers.image.created': CREATED,
      'org.opencontainers.image.description': about['description'],
      'org.opencontainers.image.title': about['name'],
      'org.opencontainers.image.version': version,
    },
  });
  const manifest = descriptorOf(OCI_MANIFEST, bytes);
  const blobs = new Map<Descriptor['digest'], Uint8Array>([
    [digestOf(config), config],
    [layer.digest, archive],
  ]);
  return { archive, content: { blobs, manifests: [{ ...manifest, bytes }] }, manifest };
}

/**
 * @param overlay a directory of manifests/overlays.
 * @param image by digest.
 * @returns what `kubectl apply -k` would apply, as one file.
 */
export async function installManifest(overlay: string, image: string): Promise<string> {
  const objects = await readKustomization(path.join(OVERLAYS, overlay));
  const documents = objects.map((object) =>
    stringify(withImage(object, image), { lineWidth: 0, aliasDuplicateObjects: false }),
  );
  return documents.join('---\n');
}

function withImage(value: unknown, image: string): unknown {
  if (value === PLACEHOLDER) return image;
  if (Array.isArray(value)) return value.map((item) => withImage(item, image));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withImage(item, image)]));
}
