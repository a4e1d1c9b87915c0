import { expect, test } from 'vitest';
import { stageImages, withImages } from './stage-images.ts';

const CONTAINERFILE = `# FROM r.example.org/not:1
FROM 127.0.0.1:5067/os/tools:1 AS tools
RUN make
from --platform=linux/amd64 r.example.org/os/more@sha256:${'a'.repeat(64)} as more
FROM tools AS again
FROM alpine
FROM configs AS final
COPY --from=tools --chown=0:0 /bin/tool /usr/bin/tool
COPY --chown=0:0 \\
  --from=r.example.org/os/files:2 /a /b
RUN --mount=type=bind,from=r.example.org/os/bind:3,source=/,target=/mnt --network=none cp --from=r.example.org/no:1 /mnt/x /
RUN <<EOF
FROM r.example.org/no:2
EOF
RUN echo \\
  FROM r.example.org/no:3
`;

test('images of registries are found where an instruction takes something from them', () => {
  expect(stageImages(CONTAINERFILE)).toEqual([
    '127.0.0.1:5067/os/tools:1',
    `r.example.org/os/more@sha256:${'a'.repeat(64)}`,
    'r.example.org/os/files:2',
    'r.example.org/os/bind:3',
  ]);
});

test('and named otherwise there, and nowhere else', () => {
  const images = stageImages(CONTAINERFILE);
  const renamed = withImages(CONTAINERFILE, (image) => `shale.local/${images.indexOf(image)}`);
  expect(renamed).toContain('FROM shale.local/0 AS tools\n');
  expect(renamed).toContain('from --platform=linux/amd64 shale.local/1 as more\n');
  expect(renamed).toContain('COPY --chown=0:0 \\\n  --from=shale.local/2 /a /b\n');
  expect(renamed).toContain(
    'RUN --mount=type=bind,from=shale.local/3,source=/,target=/mnt --network=none cp --from=r.example.org/no:1 ',
  );
  expect(withImages(CONTAINERFILE, (image) => image)).toBe(CONTAINERFILE);
});
