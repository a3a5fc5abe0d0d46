# One image for brokers and tools. The first stage compiles the native kernel and installs everything
# into a virtual environment; the second copies it onto a plain Python.
ARG PYTHON=python:3.11-slim

FROM ${PYTHON} AS build
# The official image includes Python's headers; Debian's Python has them in another package.
RUN apt-get update -qq \
    && apt-get install -qq -y --no-install-recommends gcc libc6-dev \
    && header=$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h \
    && { [ -e "$header" ] || apt-get install -qq -y --no-install-recommends python3-dev; } \
    && rm -rf /var/lib/apt/lists/*
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
COPY image/build-requirements.txt image/requirements.txt /build/
RUN pip install -q --require-hashes -r /build/build-requirements.txt \
    && python -m venv --without-pip /opt/kafka08 \
    && pip --python /opt/kafka08/bin/python install -q --require-hashes -r /build/requirements.txt \
    && rm -rf /opt/kafka08/lib/python*/site-packages/gevent/tests
COPY . /build/src
RUN pip wheel -q --no-deps --no-build-isolation --wheel-dir /build/wheels /build/src \
    && pip --python /opt/kafka08/bin/python install -q --no-deps /build/wheels/*.whl \
    && KAFKA08_KERNEL=native /opt/kafka08/bin/kafka08 --version

FROM ${PYTHON}
RUN useradd --system --uid 10001 --home-dir /var/lib/kafka08 --create-home kafka08 \
    && install --directory --owner kafka08 /var/lib/kafka08-cluster
COPY --from=build /opt/kafka08 /opt/kafka08
COPY image/server.properties /etc/kafka08/server.properties
ENV PATH=/opt/kafka08/bin:$PATH PYTHONUNBUFFERED=1
USER kafka08
WORKDIR /var/lib/kafka08
VOLUME /var/lib/kafka08
EXPOSE 9092
ENTRYPOINT ["kafka08"]
CMD ["--help"]
