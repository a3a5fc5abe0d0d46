from setuptools import Extension, setup

# optional: without a C compiler the install succeeds and kafka08.kernel uses its Python twin.
setup(
    ext_modules=[
        Extension(
            "kafka08.kernel._native",
            ["kafka08/kernel/_native.pyx"],
            depends=[
                "kafka08/kernel/crc32.h",
                "kafka08/kernel/md5.h",
                "kafka08/kernel/_sets.pxi",
                "kafka08/kernel/_entries.pxi",
                "kafka08/kernel/_validation.pxi",
                "kafka08/kernel/_conversion.pxi",
                "kafka08/kernel/_messages.pxi",
                "kafka08/kernel/_columns.pxi",
                "kafka08/kernel/_compaction.pxi",
                "kafka08/kernel/_builder.pxi",
                "kafka08/kernel/_requests.pxi",
            ],
            optional=True,
        )
    ]
)
